"""OpenVINO's benchmark_app, and other processes than the tests' own."""

import os
import subprocess
import sys
import textwrap

import openvino as ov
import pytest
from conftest import DEVICE, dense, library


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [["-hint", "latency"], ["-hint", "throughput"], ["-hint", "none", "-nstreams", "2"], ["-pc", "-api", "sync"]]
)
def test_benchmark_app(tmp_path, options):
    if DEVICE not in ov.Core().available_devices:
        pytest.skip("the device is not installed beside OpenVINO")
    model = tmp_path / "dense.xml"
    ov.save_model(dense(), model, compress_to_fp16=False)
    program = os.path.join(os.path.dirname(sys.executable), "benchmark_app")
    code, text = run(program, "-m", str(model), "-d", DEVICE, "-niter", "50", *options)
    assert code == 0, text
    assert "Throughput:" in text


def python(text):
    return run(sys.executable, "-c", f"DEVICE = {library()!r}\n" + textwrap.dedent(text))


def test_a_process_ends_while_its_objects_live():
    code, text = python(
        """
        import numpy as np, openvino as ov
        from openvino import opset13 as op
        core = ov.Core()
        if "VINELIFT" not in core.available_devices: core.register_plugin(DEVICE, "VINELIFT")
        x = op.parameter([2], np.float32)
        compiled = core.compile_model(ov.Model([op.result(op.exp(x))], [x]), "VINELIFT", {"NUM_STREAMS": 2})
        queue = ov.AsyncInferQueue(compiled, 2)
        for _ in range(9): queue.start_async([np.zeros(2, np.float32)])
        queue.wait_all(); print("done")
        """
    )
    assert (code, text.strip()) == (0, "done")


def test_a_forked_process_runs():
    code, text = python(
        """
        import os, numpy as np, openvino as ov
        from openvino import opset13 as op
        core = ov.Core()
        if "VINELIFT" not in core.available_devices: core.register_plugin(DEVICE, "VINELIFT")
        x = op.parameter([2], np.float32)
        compiled = core.compile_model(ov.Model([op.result(op.exp(x))], [x]), "VINELIFT")
        request = compiled.create_infer_request()
        zeros = [np.zeros(2, np.float32)]
        request.start_async(zeros); request.wait()
        child = os.fork()
        if child == 0:
            request.start_async(zeros); request.wait()
            os._exit(7 if request.get_output_tensor().data.tolist() == [1, 1] else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert (code, text.strip()) == (0, "7")
