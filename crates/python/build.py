#!/usr/bin/env python3
"""build.py [OUT]: builds the C library and the program, and makes the wheel `vinelift` of them in the folder OUT, or in
`wheel` below the target folder.

It is also what pip asks to build the package (pyproject.toml names it), as in `pip install crates/python`.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import wheels  # noqa: E402

LIBRARY, PROGRAM = "libopenvino_c.so", "vinelift"
LARGEST = 15_000_000


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes the wheel, and returns the name of its file."""
    library, program = wheels.build({"vinelift-capi": LIBRARY, "vinelift-cli": PROGRAM})
    files = {f"vinelift/{LIBRARY}": wheels.stripped(library), f"vinelift/bin/{PROGRAM}": wheels.stripped(program)}
    source = HERE / "src"
    for path in sorted(source.rglob("*")):
        if path.suffix in (".py", ".typed"):
            files[path.relative_to(source).as_posix()] = path.read_bytes()
    tag = f"py3-none-{wheels.platform([library, program])}"
    programs = [f"vinelift/bin/{PROGRAM}"]
    entry_points = "[console_scripts]\nvinelift = vinelift.__main__:main\n"
    wheel = wheels.write(wheel_directory, "vinelift", tag, metadata(), files, programs, entry_points)
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"error: {wheel} has {wheel.stat().st_size} bytes, expected at most {LARGEST}")
    return wheel.name


def metadata():
    """The metadata of pyproject.toml in the format of wheels."""
    lines = [
        "Metadata-Version: 2.4",
        "Name: vinelift",
        f"Version: {wheels.version()}",
        "Summary: Runs models of OpenVINO's IR, without OpenVINO, by OpenVINO's names",
        "License-Expression: MIT OR Apache-2.0",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "Keywords: openvino,inference,compiler",
        "Project-URL: Repository, https://github.com/vinelift/vinelift",
        "Requires-Python: >=3.9",
        "Requires-Dist: numpy>=1.22",
        "Provides-Extra: openvino",
        'Requires-Dist: vinelift-openvino; extra == "openvino"',
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + (HERE / "README.md").read_text()


def build_sdist(sdist_directory, config_settings=None):
    """There is none: the package is built of the whole repository."""
    raise NotImplementedError("the package is built of the whole repository: make a wheel")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else wheels.TARGET / "wheel"
    wheel = out / build_wheel(out)
    print(wheel, f"{wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
