"""The wheel in fresh environments: beside OpenVINO, with an OpenVINO elsewhere, and without one."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import SAMPLES

WHEEL = os.environ.get("VINELIFT_WHEEL")
OPENVINO = "openvino==2026.4.1"
DIGITS = SAMPLES / "models/digits"

pytestmark = pytest.mark.skipif(not WHEEL, reason="VINELIFT_WHEEL, which run.sh sets, names no wheel")

# What a program sees that is given the path of the sample, and the digits that it finds with each device.
RUN = """
import json, sys
import numpy as np

def run(package, device):
    pixels = np.load(sys.argv[1] + "/ten_digits.npy").astype(np.int32).reshape(-1, 64)
    outputs = package.compile_model(sys.argv[1] + "/digits.xml", device)(pixels)
    return [outputs["digit"].tolist(), outputs["probabilities"].tolist()]
"""
OF_CORE = """
devices = [device for device in core.available_devices if device in ("CPU", "VINELIFT")]
print(json.dumps({device: run(core, device) for device in devices}))
"""
BY_ITSELF = RUN + "import openvino; core = openvino.Core()" + OF_CORE
REGISTERED = RUN + "import openvino, vinelift; core = vinelift.register(openvino.Core())" + OF_CORE
ALONE = (
    RUN
    + """
import vinelift
print(json.dumps(run(vinelift, "CPU")))
assert "openvino" not in sys.modules
import importlib.metadata, openvino
assert not hasattr(openvino, "Core")
try:
    importlib.metadata.version("openvino")
except importlib.metadata.PackageNotFoundError:
    sys.exit()
sys.exit("OpenVINO is installed")
"""
)


class Environment:
    """A virtual environment in which nothing is installed."""

    def __init__(self, folder):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin/python"

    def run(self, *arguments, **variables):
        """What Python prints."""
        environment = {**os.environ, **variables}
        done = subprocess.run([self.python, *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pip(self, *arguments):
        return self.run("-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)

    def digits(self, program, **variables):
        """What the sample gives in this program."""
        return json.loads(self.run("-c", program, str(DIGITS), **variables))


@pytest.fixture
def environment(tmp_path):
    return Environment(tmp_path / "environment")


def assert_same(found):
    """Both devices are there, and give the same."""
    assert sorted(found) == ["CPU", "VINELIFT"]
    (names, probabilities), (expected_names, expected) = found["VINELIFT"], found["CPU"]
    assert names == expected_names
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("order", [[WHEEL, OPENVINO], [OPENVINO, WHEEL]], ids=["before", "after"])
def test_beside_openvino(environment, order):
    for package in order:
        environment.pip("install", package)
    assert_same(environment.digits(BY_ITSELF))
    assert_same(environment.digits(REGISTERED))
    environment.pip("uninstall", "--yes", "vinelift")
    assert list(environment.digits(BY_ITSELF)) == ["CPU"]


def test_openvino_elsewhere(environment, tmp_path):
    environment.pip("install", WHEEL)
    elsewhere = tmp_path / "elsewhere"
    environment.pip("install", "--no-deps", "--target", elsewhere, OPENVINO)
    assert list(environment.digits(BY_ITSELF, PYTHONPATH=str(elsewhere))) == ["CPU"]
    assert_same(environment.digits(REGISTERED, PYTHONPATH=str(elsewhere)))


def test_without_openvino(environment, ov, digits, pixels):
    environment.pip("install", WHEEL)
    installed = {line.split("==")[0] for line in environment.run("-m", "pip", "list", "--format=freeze").split()}
    assert installed - {"pip", "setuptools"} == {"numpy", "vinelift"}
    names, probabilities = environment.digits(ALONE)
    found = ov.compile_model(digits, "CPU")(pixels)
    assert names == found["digit"].tolist() and probabilities == found["probabilities"].tolist()
    environment.pip("uninstall", "--yes", "vinelift")
    left = environment.run("-c", "import importlib.util as u; print(u.find_spec('openvino'), u.find_spec('vinelift'))")
    assert left.split() == ["None", "None"]


def test_a_wheel_without_the_device(ov, monkeypatch, tmp_path):
    assert ov.DEVICE_LIBRARY.exists()
    monkeypatch.setattr("vinelift._device.DEVICE_LIBRARY", tmp_path / ov.DEVICE_LIBRARY.name)
    with pytest.raises(ImportError, match="built without the device"):
        ov.register(ov.Core())
