"""Makes wheels: archives of a package, with the files that tell of it. Nothing needs to be installed for it."""

import base64
import hashlib
import os
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

WORKSPACE = Path(__file__).resolve().parents[2]


def version():
    """The version of the workspace."""
    text = (WORKSPACE / "Cargo.toml").read_text()
    return re.search(r'^version = "([^"]+)"', text, re.MULTILINE)[1]


def stripped(path):
    """The bytes of a library or program without what only debuggers read."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "stripped")
        subprocess.run(["strip", "--strip-unneeded", "-o", copy, path], check=True)
        return Path(copy).read_bytes()


def platform(binaries):
    """The oldest C library that all files run with, as the tag of a platform."""
    needed = [(2, 28)]
    for path in binaries:
        text = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
        needed += [(int(a), int(b)) for a, b in re.findall(r"\(GLIBC_(\d+)\.(\d+)", text)]
    return "manylinux_{}_{}_{}".format(*max(needed), os.uname().machine)


def write(folder, name, tag, metadata, files, programs=(), entry_points=""):
    """Writes the wheel of the distribution `name`. `files` are contents by path, `programs` those that can be run. Returns
    its path."""
    stem = f"{name.replace('-', '_')}-{version()}"
    info = f"{stem}.dist-info"
    files = dict(files)
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: vinelift\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/METADATA"] = metadata.encode()
    if entry_points:
        files[f"{info}/entry_points.txt"] = entry_points.encode()
    for licence in ("LICENSE-APACHE", "LICENSE-MIT"):
        files[f"{info}/licenses/{licence}"] = (WORKSPACE / licence).read_bytes()
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    Path(folder).mkdir(parents=True, exist_ok=True)
    wheel = Path(folder) / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100755 if path in programs else 0o100644) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
