"""Links for Linux distributions that are older than this machine: wheels are to run where the GNU C library is 2.28 and the
C++ library that of GCC 8 (`manylinux_2_28`).

A linker takes the newest version of each symbol that it finds. Here it is made to find libraries that have this machine's
symbols in the versions of that time, with no code behind them: at run time, the libraries of the machine are used as ever.
The few functions that came later are linked in, from the folder `old_libraries`.
"""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "old_libraries"
OLDEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6")
# What the linker asks for by name, and takes for a library. `{0}` is the folder. Stacks are unwound by the machine's library,
# since that of compilers to be linked in needs glibc 2.35.
SCRIPTS = {
    "libc.so": "GROUP ( {0}/libc.so.6 {0}/libold_c.a {nonshared} AS_NEEDED ( {0}/{loader} ) )",
    "libm.so": "INPUT ( {0}/libm.so.6 )",
    "libgcc_s.so": "GROUP ( {0}/libgcc_s.so.1 -lgcc )",
    "libstdc++.so": "GROUP ( {0}/libstdc++.so.6 {0}/libold_c++.a )",
}
# Threads and `dlopen` had libraries of their own up to 2.33, which are there and empty since.
SINCE_EMPTY = ["-Wl,--push-state,--no-as-needed", "-l:libpthread.so.0", "-l:libdl.so.2", "-Wl,--pop-state"]
SYMBOL = re.compile(r"^[0-9a-f]+ .{6}(.) (\S+)\t([0-9a-f]+) +\(?([A-Z]+)_([0-9.]+)\)? +(\S+)$", re.MULTILINE)
UNVERSIONED = re.compile(r"^[0-9a-f]+ [^w]{7} \*UND\*\t[0-9a-f]+ +(?:Base +)?(\S+)$", re.MULTILINE)


def made_in(folder):
    """Makes the libraries in a folder, and a program `cc` there that links with them. Where a program needs a symbol that they
    lack, it is linked with this machine's libraries."""
    folder = Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    loader = re.search(r"NEEDED +(ld-linux\S+)", _output("objdump", "-p", _found("libc.so.6")))[1]
    for library in (*LIBRARIES, loader):
        _without_code(_found(library), folder)
    _archive(folder / "libold_c.a", SOURCES.glob("*.c"))
    _archive(folder / "libold_c++.a", SOURCES.glob("*.cpp"))
    for name, script in SCRIPTS.items():
        (folder / name).write_text(script.format(folder, nonshared=_found("libc_nonshared.a"), loader=loader))
    options = shlex.join([f"-L{folder}", "-Wl,--wrap=__libc_start_main", *SINCE_EMPTY])
    program = folder / "cc"
    compiler = shlex.quote(shutil.which("cc"))
    program.write_text(f'#!/bin/sh\n{compiler} {options} "$@" || exec {compiler} "$@"\n')
    program.chmod(0o755)


def too_new(path):
    """The symbols that a file needs of this machine's libraries and older ones lack, with their versions where it says them."""
    text = _output("objdump", "-T", path)
    found = {
        f"{name}@{family}_{version}"
        for *_, family, version, name in SYMBOL.findall(text)
        if not _is_old(family, version)
    }
    return sorted(found | (set(UNVERSIONED.findall(text)) & _names(False) - _names(True)))


def _names(is_old):
    """The names of the symbols of this machine's libraries that have a version which is, or is not, old enough."""
    tables = [SYMBOL.findall(_output("objdump", "-T", _found(library))) for library in LIBRARIES]
    return {name for table in tables for *_, family, version, name in table if _is_old(family, version) == is_old}


def _is_old(family, version):
    return _numbers(version) <= OLDEST.get(family, ())


def _numbers(version):
    return tuple(map(int, version.split(".")))


def _without_code(path, folder):
    """Makes the library of the same name that has the symbols of this one, each in its newest version that is old enough."""
    newest = {}
    for kind, section, size, family, version, name in SYMBOL.findall(_output("objdump", "-T", path)):
        if section not in ("*UND*", "*ABS*") and _is_old(family, version):
            if section in (".tbss", ".tdata"):
                kind = "tls_object"
            else:
                kind = {"O": "object"}.get(kind, "function")
            newest[name] = max(newest.get(name, ((),)), (_numbers(version), f"{family}_{version}", kind, int(size, 16)))
    code, versions = ['.section .note.GNU-stack,"",%progbits\n'], {}
    for name, (_, version, kind, size) in newest.items():
        code.append('.section .tbss,"awT",%nobits\n' if kind == "tls_object" else ".bss\n")
        code.append(f'.globl "{name}"\n.type "{name}", %{kind}\n.size "{name}", {size}\n"{name}": .zero {size}\n')
        versions.setdefault(version, []).append(f"{name};")
    (folder / "symbols.s").write_text("".join(code))
    script = "".join(f"{version} {{ {' '.join(names)} }};\n" for version, names in versions.items())
    (folder / "symbols.map").write_text(script)
    options = ["-shared", "-nostdlib", f"-Wl,-soname,{path.name}", f"-Wl,--version-script={folder}/symbols.map"]
    _output("cc", *options, "-o", folder / path.name, folder / "symbols.s")


def _archive(path, sources):
    """Compiles the sources into a library that is linked in."""
    objects = []
    for source in sorted(sources):
        objects.append(path.parent / f"{source.name}.o")
        _output("cc", "-O2", "-fPIC", "-fvisibility=hidden", "-c", source, "-o", objects[-1])
    _output("ar", "rcs", path, *objects)


def _found(library):
    """The file of a library that the compiler links with."""
    return Path(os.path.abspath(_output("cc", f"-print-file-name={library}").strip()))


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
