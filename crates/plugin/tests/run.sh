#!/usr/bin/env bash
# run.sh [python|clients] [ARGUMENT …]: builds the device, makes a wheel of it, and runs its Python tests with that in a
# virtual environment below the target folder. `clients` are programs of others (optimum-intel, NNCF, openvino-genai with
# Whisper), which take 3 GB for PyTorch. Needs PyPI. Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/../../.."
target=${CARGO_TARGET_DIR:-target}
suite=python
case ${1:-} in
python | clients)
    suite=$1
    shift
    ;;
esac
tests=crates/plugin/tests/$suite
[ "${target#/}" != "$target" ] || target=$PWD/$target

python3 -m venv "$target/plugin/venv-$suite"
python=$target/plugin/venv-$suite/bin/python
"$python" -m pip install --quiet --disable-pip-version-check -r "$tests/requirements.txt"

OPENVINO_DIR=$("$python" -c "import openvino, os; print(os.path.dirname(openvino.__file__))")
export OPENVINO_DIR
rm -rf "$target/plugin/wheel"
"$python" crates/plugin/wheel/build.py "$target/plugin/wheel"
[ "$suite" = clients ] || "$python" crates/python/tests/check_tag.py "$target"/plugin/wheel/*.whl
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/plugin/wheel/*.whl

export VINELIFT_DEVICE=$("$python" -c "import vinelift_openvino; print(vinelift_openvino.LIBRARY)")
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider "$tests" "$@"
