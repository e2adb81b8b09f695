#!/usr/bin/env bash
# Makes the wheel, and runs the tests with it in a virtual environment below the target folder. Needs PyPI, and says so where
# that is out of reach. Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/../../.."
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
tests=$PWD/crates/python/tests

python3 -m venv "$target/python/venv"
python=$target/python/venv/bin/python
log=$target/python/pip.log
if ! "$python" -m pip install --quiet --disable-pip-version-check --retries 1 -r "$tests/requirements.txt" >"$log" 2>&1; then
    cat "$log"
    if grep -qE 'ConnectionError|Timeout|NameResolution|ProxyError|from versions: none' "$log"; then
        echo "skipped: PyPI, which has what the tests need, cannot be reached"
        exit 0
    fi
    exit 1
fi

rm -rf "$target/python/wheel"
"$python" crates/python/build.py "$target/python/wheel"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/python/wheel/*.whl

# What is tested is the wheel, and nothing that the caller has set.
unset PYTHONPATH VINELIFT_LIBRARY VINELIFT_PROGRAM
export PYTHONDONTWRITEBYTECODE=1
cd "$target/python"
"$python" -m mypy --strict --cache-dir=/dev/null -p vinelift
"$python" -m ruff check --quiet --no-cache "$tests/.."
"$python" -m ruff format --quiet --no-cache --check "$tests/.."
"$python" -m pytest -q -p no:cacheprovider --rootdir "$tests" "$tests" "$@"
