"""``python -m vinelift`` is the program `vinelift`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

from ._dump import PROGRAM


def main() -> NoReturn:
    """Becomes the program, with the arguments of this one."""
    if not PROGRAM.exists():
        sys.exit(f"error: {PROGRAM} is not there: this package was made without the program")
    if os.name == "nt":
        sys.exit(subprocess.run([PROGRAM, *sys.argv[1:]], check=False).returncode)
    os.execv(PROGRAM, [os.fspath(PROGRAM), *sys.argv[1:]])


if __name__ == "__main__":
    main()
