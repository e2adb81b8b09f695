#!/usr/bin/env python3
"""build.py LIBRARIES OUT: makes the wheel `vinelift` of the two files of the device, in the folder OUT.

The wheel also has the file `openvino/libs/plugins.xml`, which OpenVINO's core library reads when it lies beside it: that
alone gives the device to every core of the environment, and uninstalling takes it away.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARIES = ("libvinelift_openvino_plugin.so", "libvinelift_openvino.so")
PLUGINS = """<ie><plugins>
<plugin name="VINELIFT" location="../../vinelift/libvinelift_openvino_plugin.so"></plugin>
</plugins></ie>
"""


def version():
    workspace = (HERE.parents[2] / "Cargo.toml").read_text()
    return re.search(r'^version = "([^"]+)"', workspace, re.MULTILINE)[1]


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "library")
        subprocess.run(["strip", "--strip-unneeded", "-o", copy, path], check=True)
        return Path(copy).read_bytes()


def platform(libraries):
    """The oldest C library that all files run with, as the tag of a platform."""
    needed = [(2, 28)]
    for path in libraries:
        text = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        needed += [(int(a), int(b)) for a, b in re.findall(r"\(GLIBC_(\d+)\.(\d+)", text)]
    return "manylinux_{}_{}_{}".format(*max(needed), os.uname().machine)


def main():
    source, out = map(Path, sys.argv[1:])
    libraries = [source / name for name in LIBRARIES]
    tag, number = f"py3-none-{platform(libraries)}", version()
    info = f"vinelift-{number}.dist-info"
    files = {f"vinelift/{path.name}": stripped(path) for path in libraries}
    files["vinelift/__init__.py"] = (HERE / "vinelift/__init__.py").read_bytes()
    files["openvino/libs/plugins.xml"] = PLUGINS.encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: vinelift\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: vinelift\nVersion: {number}\nSummary: Vinelift as a device of OpenVINO\n"
        "License: MIT OR Apache-2.0\nRequires-Dist: openvino>=2026.1,<2026.5\n"
    ).encode()
    digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"vinelift-{number}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(wheel, f"{wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
