"""Makes wheels: archives of a package, with the files that tell of it. Nothing needs to be installed for it."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import linker

WORKSPACE = Path(__file__).resolve().parents[2]
TARGET = WORKSPACE / os.environ.get("CARGO_TARGET_DIR", "target")


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


def build(files):
    """Builds packages of the workspace, for this machine and older ones. `files` has the file of each that is wanted; returns
    their paths."""
    paths = [TARGET / "release" / name for name in files.values()]
    environment = dict(os.environ)
    folder = TARGET / "old_libraries"
    try:
        linker.made_in(folder)
        environment["PATH"] = os.pathsep.join([str(folder), environment["PATH"]])
        for path in filter(Path.exists, paths):
            if linker.too_new(path):
                _unlink(path)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"linked for this machine alone: {error} {getattr(error, 'stderr', '')}".rstrip(), file=sys.stderr)
    command = ["cargo", "build", "--release", "--locked", *(f"--package={package}" for package in files)]
    subprocess.run(command, check=True, cwd=WORKSPACE, stdout=sys.stderr, env=environment)
    return paths


def _unlink(path):
    """Removes a file that cargo linked, which so links it again: it does not know of the folder in PATH."""
    for same in path.parent.glob(f"deps/{path.stem}*"):
        if same.samefile(path):
            same.unlink()


def platform(binaries):
    """The oldest platform that all files run on, as a tag. Where a file needs more than the oldest that wheels are made for, it
    is this machine, and a line says for which symbols."""
    glibc = ".".join(map(str, linker.OLDEST["GLIBC"]))
    newer = {path: linker.too_new(path) for path in binaries}
    for path, symbols in newer.items():
        if symbols:
            print(f"{path} needs symbols later than glibc {glibc} has: {', '.join(symbols)}", file=sys.stderr)
    if any(newer.values()):
        glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    return f"manylinux_{glibc.replace('.', '_')}_{os.uname().machine}"


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
