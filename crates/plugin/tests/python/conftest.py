"""Shared by the tests: a core with the device, and models that are small.

VINELIFT_DEVICE names the file of the device, `libvinelift_openvino_plugin.so`; if it is installed beside OpenVINO, that
one is tested.
"""

import os

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

DEVICE = "VINELIFT"


def library():
    return os.environ["VINELIFT_DEVICE"]


@pytest.fixture
def core():
    core = ov.Core()
    if DEVICE not in core.available_devices:
        core.register_plugin(library(), DEVICE)
    return core


def named(node, name):
    node.output(0).get_tensor().set_names({name})
    node.set_friendly_name(name)
    return node


def dense(rows=2, columns=3, units=4):
    """relu(x @ w + b), with x of [rows, columns]."""
    rng = np.random.default_rng(1)
    x = named(op.parameter([rows, columns], np.float32), "x")
    weights = op.constant(rng.standard_normal((columns if columns > 0 else 3, units)).astype(np.float32))
    bias = op.constant(rng.standard_normal(units).astype(np.float32))
    y = named(op.relu(op.add(op.matmul(x, weights, False, False), bias)), "y")
    return ov.Model([named(op.result(y), "out")], [x], "dense")


def counter():
    """A variable to which each run adds x, by rows: the output is what it holds then."""
    x = named(op.parameter([-1, 2], np.float32), "x")
    start = op.constant(np.zeros((0, 2), np.float32))
    held = op.read_value(start, "held", ov.Type.f32, ov.PartialShape([-1, 2]))
    all_rows = named(op.concat([held, x], 0), "rows")
    assign = op.assign(all_rows, "held")
    return ov.Model([op.result(all_rows)], [assign], [x], "counter")


WORDS = ["a", "", "zwölf", "x" * 100]
WORDS_IR = """<net name="words" version="11"><layers>
<layer id="0" name="index" type="Parameter" version="opset1"><data shape="?" element_type="i64"/>
<output><port id="0" precision="I64" names="index"><dim>-1</dim></port></output></layer>
<layer id="1" name="words" type="Const" version="opset1"><data element_type="string" shape="4" offset="0" size="{}"/>
<output><port id="0" precision="STRING"><dim>4</dim></port></output></layer>
<layer id="2" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="{}" size="8"/>
<output><port id="0" precision="I64"/></output></layer>
<layer id="3" name="word" type="Gather" version="opset8"><data batch_dims="0"/>
<input><port id="0" precision="STRING"><dim>4</dim></port><port id="1" precision="I64"><dim>-1</dim></port>
<port id="2" precision="I64"/></input>
<output><port id="3" precision="STRING"><dim>-1</dim></port></output></layer>
<layer id="4" name="r" type="Result" version="opset1"><input><port id="0" precision="STRING"><dim>-1</dim></port></input></layer>
</layers><edges><edge from-layer="1" from-port="0" to-layer="3" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="3" to-port="1"/><edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
<edge from-layer="3" from-port="3" to-layer="4" to-port="0"/></edges></net>"""


def words(core):
    """Those of WORDS that are asked for. As a file: Python cannot make constants of strings."""
    texts = [word.encode() for word in WORDS]
    ends = np.cumsum([0] + [len(text) for text in texts])
    packed = np.array([len(texts), *ends], np.int32).tobytes() + b"".join(texts)
    weights = np.frombuffer(packed + bytes(8), np.uint8)
    return core.read_model(WORDS_IR.format(len(packed), len(packed)).encode(), ov.Tensor(weights.copy()))


def outputs(core, model, device, feeds, config=None):
    compiled = core.compile_model(model, device, config or {})
    return [np.array(value) for value in compiled(feeds).values()]


def compare(core, model, feeds, tolerance=2e-6, device=DEVICE):
    """The outputs on the device, which must be those of CPU."""
    expected = outputs(core, model, "CPU", feeds, {"INFERENCE_PRECISION_HINT": "f32"})
    found = outputs(core, model, device, feeds)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind == "f":
            scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(one, other)
    return found
