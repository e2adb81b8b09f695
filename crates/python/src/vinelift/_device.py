"""Vinelift as the device ``VINELIFT`` of an installed OpenVINO."""

from __future__ import annotations

import os
from typing import Any

from ._library import FOLDER

DEVICE_LIBRARY = FOLDER / "libvinelift_openvino_plugin.so"
"""The file of the device that OpenVINO loads. A wheel that was made without OpenVINO's headers does not have it."""


def register(core: Any, name: str = "VINELIFT") -> Any:
    """Gives `core`, an ``openvino.Core``, the device `name`, unless it has it, and returns the core. The cores of an
    OpenVINO that was installed into the same environment have it by themselves."""
    if not DEVICE_LIBRARY.exists():
        raise ImportError("this wheel of vinelift was built without the device for OpenVINO")
    if name not in core.available_devices:
        core.register_plugin(os.fspath(DEVICE_LIBRARY), name)
    return core
