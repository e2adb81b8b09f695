#!/usr/bin/env bash
# Makes the wheel, and runs the tests with it in a virtual environment below the target folder. Needs PyPI, and says so where
# that is out of reach. Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/../../.."
tests=$PWD/crates/python/tests
source "$tests/environment.sh"
make_environment python/venv "$tests/requirements.txt"
"$python" "$tests/check_tag.py" "$wheel"

# What is tested is the wheel, and nothing that the caller has set.
unset PYTHONPATH VINELIFT_LIBRARY VINELIFT_PROGRAM
export PYTHONDONTWRITEBYTECODE=1 VINELIFT_WHEEL=$wheel
cd "$target/python"
"$python" -m mypy --strict --cache-dir=/dev/null -p vinelift
"$python" -m ruff check --quiet --no-cache "$tests/.."
"$python" -m ruff format --quiet --no-cache --check "$tests/.."
"$python" -m pytest -q -p no:cacheprovider --rootdir "$tests" "$tests" "$@"

# The examples on a Ray cluster.
install -r "$tests/../examples/requirements.txt"
"$python" -m pytest -q -W ignore -p no:cacheprovider --rootdir "$tests/../examples" "$tests/../examples"
