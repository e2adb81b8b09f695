# For scripts in the folder of the repository that run tests with the wheel, which source this file.
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac

# install ARGUMENT …: installs what pip is told to. Where PyPI is out of reach, that is said, and the script ends.
install() {
    local log
    log=$(mktemp)
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 "$@" >"$log" 2>&1 && rm "$log" && return
    cat "$log"
    grep -qE 'ConnectionError|Timeout|NameResolution|ProxyError|from versions: none' "$log" || exit 1
    echo "skipped: PyPI, which has what the tests need, cannot be reached"
    exit 0
}

# make_environment FOLDER REQUIREMENTS: makes a virtual environment in a folder below the target folder, with OpenVINO and
# whatever else the tests require, and with the wheel, which is made with that OpenVINO's headers. Sets `python` and `wheel`.
make_environment() {
    python3 -m venv "$target/$1"
    python=$target/$1/bin/python
    install -r "$2"
    OPENVINO_DIR=$("$python" -c "import openvino, os; print(os.path.dirname(openvino.__file__))")
    export OPENVINO_DIR
    rm -rf "$target/python/wheel"
    "$python" crates/python/build.py "$target/python/wheel"
    wheel=$(echo "$target"/python/wheel/*.whl)
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
}
