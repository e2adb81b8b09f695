"""Shared by the tests: the samples, and both packages."""

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

SAMPLES = Path(__file__).resolve().parents[3] / "ir-samples"
# Where OpenVINO is not installed, our wheel's `openvino/libs/plugins.xml` makes a package of that name that has no file.
OPENVINO = importlib.util.find_spec("openvino")
PACKAGES = ["vinelift"] + (["openvino"] if OPENVINO and OPENVINO.origin else [])


@pytest.fixture
def ov():
    """The package."""
    return importlib.import_module("vinelift")


@pytest.fixture
def openvino():
    """OpenVINO's package."""
    if "openvino" not in PACKAGES:
        pytest.skip("OpenVINO is not installed")
    return importlib.import_module("openvino")


@pytest.fixture(params=PACKAGES)
def either(request):
    """The package, and OpenVINO's: what a test expects of it is so with both."""
    return importlib.import_module(request.param)


@pytest.fixture
def digits():
    """A network whose batch is dynamic, and that gives strings."""
    return str(SAMPLES / "models/digits/digits.xml")


@pytest.fixture
def pixels():
    return np.load(SAMPLES / "models/digits/ten_digits.npy").astype(np.int32).reshape(-1, 64)


@pytest.fixture
def gather():
    """`GatherElements` of `data` f32[2,2] and `indices` i32[2,2]."""
    return str(SAMPLES / "gather_elements/specification_1.xml")


DATA = np.array([[1, 2], [3, 4]], np.float32)
INDICES = np.array([[0, 1], [0, 0]], np.int32)
EXPECTED = np.array([[1, 4], [1, 2]], np.float32)


def one_layer(type, version, element_type="f32", dims=("?",), attributes="", precision=None):
    """A model of one layer that takes `x`, of one input, and gives `y` of the same type and shape."""
    precision = precision or {"f32": "FP32", "i64": "I64", "bf16": "BF16", "boolean": "BOOL"}[element_type]
    text = ",".join(map(str, dims))
    ports = "".join(f"<dim>{-1 if d == '?' else d}</dim>" for d in dims)
    return f"""<?xml version="1.0"?>
<net name="one" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{text}" element_type="{element_type}"/>
<output><port id="0" precision="{precision}" names="x">{ports}</port></output></layer>
<layer id="1" name="layer" type="{type}" version="{version}">{attributes}
<input><port id="0" precision="{precision}">{ports}</port></input>
<output><port id="1" precision="{precision}" names="y">{ports}</port></output></layer>
<layer id="2" name="result" type="Result" version="opset1">
<input><port id="0" precision="{precision}">{ports}</port></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
</edges></net>""".encode()
