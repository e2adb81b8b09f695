#!/usr/bin/env python3
"""build.py OUT: builds the files of the device, and makes the wheel `vinelift-openvino` of them in the folder OUT.

The wheel also has the file `openvino/libs/plugins.xml`, which OpenVINO's core library reads when it lies beside it: that
alone gives the device to every core of the environment, and uninstalling takes it away.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
import wheels  # noqa: E402

PACKAGE = "vinelift_openvino"
FILES = {
    "vinelift-plugin-loader": "libvinelift_openvino_plugin.so",
    "vinelift-plugin": "libvinelift_openvino.so",
    "vinelift-capi": "libopenvino_c.so",
}
PLUGINS = f"""<ie><plugins>
<plugin name="VINELIFT" location="../../{PACKAGE}/{FILES['vinelift-plugin-loader']}"></plugin>
</plugins></ie>
"""


def main():
    (out,) = map(Path, sys.argv[1:])
    libraries = wheels.build(FILES)
    if b"vinelift_create_device" not in libraries[1].read_bytes():
        sys.exit(f"{libraries[1]} was built without OpenVINO's headers: OPENVINO_DIR must name the folder of its package")
    files = {f"{PACKAGE}/{path.name}": wheels.stripped(path) for path in libraries}
    files[f"{PACKAGE}/__init__.py"] = (HERE / PACKAGE / "__init__.py").read_bytes()
    files["openvino/libs/plugins.xml"] = PLUGINS.encode()
    metadata = (
        f"Metadata-Version: 2.4\nName: vinelift-openvino\nVersion: {wheels.version()}\n"
        "Summary: Vinelift as a device of OpenVINO\nLicense-Expression: MIT OR Apache-2.0\n"
        "License-File: LICENSE-APACHE\nLicense-File: LICENSE-MIT\nRequires-Dist: openvino>=2026.1,<2026.5\n"
    )
    wheel = wheels.write(out, "vinelift-openvino", f"py3-none-{wheels.platform(libraries)}", metadata, files)
    print(wheel, f"{wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
