"""Shared by the tests: the names of the devices, and CPU at its most precise."""

import openvino as ov
import pytest

DEVICE = "VINELIFT"
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


def pytest_sessionstart():
    if DEVICE not in ov.Core().available_devices:
        pytest.exit("the device is not installed beside OpenVINO: see run.sh", returncode=2)
