#!/usr/bin/env python3
"""build.py [OUT]: builds the C library, the device for OpenVINO and the program, and makes the wheel `vinelift` of them in
the folder OUT, or in `wheel` below the target folder.

The device is built with OpenVINO's headers, which are in its Python package: that of `python3`, or the one whose folder
OPENVINO_DIR names. Where they are not there, the wheel is made without the device, and a line says so.

It is also what pip asks to build the package (pyproject.toml names it), as in `pip install crates/python`.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import wheels  # noqa: E402

LIBRARY, PROGRAM = "libopenvino_c.so", "vinelift"
# The device: OpenVINO loads the first file, which loads the second, and the C library, from the folder that it is in.
DEVICE = {"vinelift-plugin-loader": "libvinelift_openvino_plugin.so", "vinelift-plugin": "libvinelift_openvino.so"}
# OpenVINO's core library reads the file `plugins.xml` that lies beside it. That gives the device to every core of the
# environment, whichever of the two packages was installed first, and uninstalling takes it away.
PLUGINS = f"""<ie><plugins>
<plugin name="VINELIFT" location="../../vinelift/{DEVICE["vinelift-plugin-loader"]}"></plugin>
</plugins></ie>
"""
# Where OpenVINO is not installed, this says whose the folder is. It also has pip remove the folder: pip leaves folders that
# have no file of a package but in further folders.
NOTE = "The package vinelift has put libs/plugins.xml here, which gives OpenVINO the device VINELIFT.\n"
WITHOUT_DEVICE = (
    "the wheel is made without the device for OpenVINO: it needs a C++ compiler, and OPENVINO_DIR or python3 to have "
    "OpenVINO's Python package"
)
LARGEST = 15_000_000


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Makes the wheel, and returns the name of its file."""
    built = wheels.build({"vinelift-capi": LIBRARY, "vinelift-cli": PROGRAM, **DEVICE})
    library, program, *device = built
    source = HERE / "src"
    paths = [path for path in sorted(source.rglob("*")) if path.suffix in (".py", ".typed")]
    files = {path.relative_to(source).as_posix(): path.read_bytes() for path in paths}
    if b"vinelift_create_device" in device[1].read_bytes():
        files["openvino/libs/plugins.xml"] = PLUGINS.encode()
        files["openvino/vinelift.txt"] = NOTE.encode()
    else:
        print(WITHOUT_DEVICE, file=sys.stderr)
        device = []
    libraries = [library, *device]
    files.update({f"vinelift/{path.name}": wheels.stripped(path) for path in libraries})
    programs = {f"vinelift/bin/{PROGRAM}": wheels.stripped(program)}
    tag = f"py3-none-{wheels.platform([*libraries, program])}"
    entry_points = "[console_scripts]\nvinelift = vinelift.__main__:main\n"
    wheel = wheels.write(wheel_directory, "vinelift", tag, metadata(), {**files, **programs}, programs, entry_points)
    if wheel.stat().st_size > LARGEST:
        sys.exit(f"error: {wheel} has {wheel.stat().st_size} bytes, expected at most {LARGEST}")
    return wheel.name


def metadata():
    """The metadata of pyproject.toml in the format of wheels."""
    lines = [
        "Metadata-Version: 2.4",
        "Name: vinelift",
        f"Version: {wheels.version()}",
        "Summary: Runs models of OpenVINO's IR, without OpenVINO by its names, or as a device of it",
        "License-Expression: MIT OR Apache-2.0",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "Keywords: openvino,inference,compiler",
        "Project-URL: Repository, https://github.com/vinelift/vinelift",
        "Requires-Python: >=3.9",
        "Requires-Dist: numpy>=1.22",
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
