"""check_tag.py WHEEL: fails unless the wheel is tagged `manylinux_2_28`, and `auditwheel` finds nothing that needs more."""

import re
import subprocess
import sys

WANTED = "manylinux_2_28"


def main():
    (wheel,) = sys.argv[1:]
    command = [sys.executable, "-m", "auditwheel", "show", wheel]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r'platform tag: "(\w+)"', " ".join(shown.split()))
    if WANTED not in wheel or not found or not is_as_old(found[1]):
        sys.exit(f"{wheel} should be of {WANTED}; auditwheel says\n{shown}")


def is_as_old(tag):
    """Whether what runs on the platform `tag` also runs on `WANTED`."""
    numbers = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return bool(numbers) and tuple(map(int, numbers.groups())) <= (2, 28)


if __name__ == "__main__":
    main()
