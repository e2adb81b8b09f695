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
install() {
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" >"$log" 2>&1 && return
    cat "$log"
    grep -qE 'ConnectionError|Timeout|NameResolution|ProxyError|from versions: none' "$log" || exit 1
    echo "skipped: PyPI, which has what the tests need, cannot be reached"
    exit 0
}
install -r "$tests/requirements.txt"

rm -rf "$target/python/wheel"
"$python" crates/python/build.py "$target/python/wheel"
"$python" crates/python/tests/check_tag.py "$target"/python/wheel/*.whl
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/python/wheel/*.whl

# What is tested is the wheel, and nothing that the caller has set.
unset PYTHONPATH VINELIFT_LIBRARY VINELIFT_PROGRAM
export PYTHONDONTWRITEBYTECODE=1
cd "$target/python"
"$python" -m mypy --strict --cache-dir=/dev/null -p vinelift
"$python" -m ruff check --quiet --no-cache "$tests/.."
"$python" -m ruff format --quiet --no-cache --check "$tests/.."
"$python" -m pytest -q -p no:cacheprovider --rootdir "$tests" "$tests" "$@"

# The examples on a Ray cluster.
install -r "$tests/../examples/requirements.txt"
"$python" -m pytest -q -W ignore -p no:cacheprovider --rootdir "$tests/../examples" "$tests/../examples"
