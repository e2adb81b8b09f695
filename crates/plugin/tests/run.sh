#!/usr/bin/env bash
# run.sh [python|clients] [ARGUMENT …]: makes the wheel, and runs the Python tests of the device with it in a virtual
# environment below the target folder. `clients` are programs of others (optimum-intel, NNCF, openvino-genai with Whisper),
# which take 3 GB for PyTorch. Needs PyPI, and says so where that is out of reach. Arguments are pytest's.
set -euo pipefail
cd "$(dirname "$0")/../../.."
suite=python
case ${1:-} in
python | clients)
    suite=$1
    shift
    ;;
esac
tests=crates/plugin/tests/$suite
source crates/python/tests/environment.sh
make_environment "plugin/venv-$suite" "$tests/requirements.txt"

VINELIFT_DEVICE=$("$python" -c "import vinelift; print(vinelift.DEVICE_LIBRARY)")
export VINELIFT_DEVICE
PYTHONDONTWRITEBYTECODE=1 "$python" -m pytest -q -p no:cacheprovider "$tests" "$@"
