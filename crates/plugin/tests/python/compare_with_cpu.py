"""Runs samples on the device and on CPU in one process, and prints a line for each: how the two compare."""

import sys

import openvino as ov
import samples
from conftest import DEVICE, library


def compared(core, case):
    try:
        expected = case.run(core, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    except RuntimeError:
        return "CPU refuses"
    try:
        found = case.run(core, DEVICE, {})
    except RuntimeError:
        return "fails"
    pairs = zip(found, expected)
    is_equal = all(samples.difference(*pair, max(case.close, 1e-5)) == "" for pair in pairs)
    return "equal" if is_equal else "different"


def main():
    core = ov.Core()
    if DEVICE not in core.available_devices:
        core.register_plugin(library(), DEVICE)
    cases = {case.name: case for case in samples.CASES}
    for name in sys.argv[1:]:
        print(compared(core, cases[name]), flush=True)


if __name__ == "__main__":
    main()
