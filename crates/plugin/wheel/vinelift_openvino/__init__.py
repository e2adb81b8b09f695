"""Vinelift as the device VINELIFT of OpenVINO.

Where OpenVINO was installed with pip into the same environment, every program of it has the device. For other
installations of OpenVINO, :func:`register` gives it to a core.
"""

import os

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libvinelift_openvino_plugin.so")
"""The file of the device that OpenVINO loads."""


def register(core=None, name="VINELIFT"):
    """Gives `core`, or a new one, the device, unless it has it, and returns the core."""
    if core is None:
        import openvino

        core = openvino.Core()
    if name not in core.available_devices:
        core.register_plugin(LIBRARY, name)
    return core
