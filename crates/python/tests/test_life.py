"""Lifetimes, threads, and the end of the interpreter."""

import gc
import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import DATA, EXPECTED, INDICES, SAMPLES, one_layer

PRODUCT = str(SAMPLES / "mat_mul/opset1.xml")


def long_run(ov, size=1500):
    """A request whose runs take a good part of a second."""
    core = ov.Core()
    model = core.read_model(PRODUCT)
    model.reshape({"a": [size, size], "b": [size, size]})
    request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    ones = np.ones((size, size), np.float32)
    request.infer([ones, ones])
    return request, ones


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order(ov, gather, order):
    core = ov.Core()
    model = core.read_model(gather)
    compiled = core.compile_model(model, "CPU")
    request = compiled.create_infer_request()
    port, tensor = compiled.output(), request.get_output_tensor()
    request.infer([DATA, INDICES])
    view = tensor.data
    things = [core, model, compiled, request]
    del core, model, compiled, request
    for k in order:
        things[k] = None
        gc.collect()
    assert (view == EXPECTED).all() and (tensor.data == EXPECTED).all()
    assert port.any_name == "out" and port.shape == [2, 2]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="how much memory there is, Linux tells in a file")
def test_memory_stays(ov, gather):
    compiled = ov.compile_model(gather, "CPU")
    big = ov.compile_model(ov.Core().read_model(one_layer("ReLU", "opset1")), "CPU")

    def once():
        request = compiled.create_infer_request()
        request.infer([DATA, INDICES])
        request.start_async({"data": ov.Tensor(DATA), "indices": INDICES})
        request.wait()
        big.create_infer_request().infer([np.zeros(20_000, np.float32)], share_outputs=True)

    for _ in range(200):
        once()
    gc.collect()
    before = resident()
    for _ in range(1000):
        once()
    gc.collect()
    # Each time 80 kB of input and as much output would be left.
    assert resident() - before < 20_000_000


def test_without_the_collector(ov, gather):
    """Nothing here is in a circle: what is dropped is freed at once."""
    import weakref

    gc.collect()
    gc.disable()
    try:
        compiled = ov.compile_model(gather, "CPU")
        compiled([DATA, INDICES])
        request = compiled.create_infer_request()
        request.infer([DATA, INDICES])
        request.start_async([DATA, INDICES])
        request.wait()
        queue = ov.AsyncInferQueue(compiled, 2)
        queue.start_async([DATA, INDICES])
        queue.wait_all()
        kept = [weakref.ref(thing) for thing in (compiled, request, queue)]
        del compiled, request, queue
        assert [ref() for ref in kept] == [None] * 3
    finally:
        gc.enable()


def test_other_threads_of_python_go_on(ov):
    request, ones = long_run(ov)
    turns, is_over = 0, threading.Event()

    def run():
        for _ in range(3):
            request.infer([ones, ones])
        is_over.set()

    thread = threading.Thread(target=run)
    start = time.perf_counter()
    thread.start()
    # Were the lock held, there would be a turn or two between the runs.
    while not is_over.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 10 or time.perf_counter() - start < 0.05


def test_two_threads_run_at_once(ov, gather):
    compiled = ov.compile_model(gather, "CPU")
    wrong = []

    def run(k):
        data = DATA * k
        request = compiled.create_infer_request()
        for _ in range(500):
            if not (request.infer([data, INDICES])[0] == EXPECTED * k).all():
                wrong.append(k)
            if not (compiled([data, INDICES])[0] == EXPECTED * k).all():
                wrong.append(-k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_run_is_busy_and_can_be_cancelled(ov):
    request, ones = long_run(ov, 2500)
    request.start_async([ones, ones])
    with pytest.raises(ov.Error, match="running"):
        request.infer([ones, ones])
    with pytest.raises(ov.Error, match="running"):
        request.start_async()
    request.cancel()
    try:
        request.wait()
    except ov.Error as error:
        assert error.status == -13
    assert (request.infer([ones, ones])[0] == 2500).all()


def test_a_request_that_is_dropped_runs_to_its_end(ov, gather):
    compiled = ov.compile_model(gather, "CPU")
    found, told = [], threading.Event()
    request = compiled.create_infer_request()

    def done(userdata):
        found.append(userdata)
        told.set()

    request.set_callback(done, 7)
    request.start_async([DATA, INDICES])
    del request
    assert told.wait(10) and found == [7]


def test_a_callback_starts_the_next_run(ov, gather):
    request = ov.compile_model(gather, "CPU").create_infer_request()
    turns, told = [], threading.Event()

    def done(_):
        turns.append(request.results[0].tolist())
        if len(turns) < 50:
            request.start_async()
        else:
            told.set()

    request.set_callback(done)
    request.start_async([DATA, INDICES])
    assert told.wait(30) and turns == [EXPECTED.tolist()] * 50
    request.wait()


def test_a_run_that_fails(ov):
    """Indices out of range are errors, also of runs on other threads; no callback is called for these."""
    compiled = ov.compile_model(str(SAMPLES / "gather_elements/specification_1.xml"), "CPU")
    bad = INDICES + 5
    with pytest.raises(ov.Error, match="GatherElements"):
        compiled([DATA, bad])
    request = compiled.create_infer_request()
    called = []
    request.set_callback(called.append)
    request.start_async([DATA, bad])
    with pytest.raises(ov.Error, match="GatherElements"):
        request.wait()
    assert not called
    queue = ov.AsyncInferQueue(compiled, 2)
    queue.set_callback(lambda request, userdata: called.append(userdata))
    queue.start_async([DATA, bad], 1)
    with pytest.raises(ov.Error, match="GatherElements"):
        queue.wait_all()
    queue.start_async([DATA, INDICES], 2)
    queue.wait_all()
    assert called == [2]


ENDS = """
import numpy as np, sys, threading
import vinelift as ov
core = ov.Core()
model = core.read_model({product!r})
model.reshape({{"a": [800, 800], "b": [800, 800]}})
compiled = core.compile_model(model, "CPU")
ones = np.ones((800, 800), np.float32)
keep = [compiled, compiled.create_infer_request(), compiled([ones, ones]), compiled.output()]
view = keep[1].get_output_tensor().data
queue = ov.AsyncInferQueue(compiled, 3)
queue.set_callback(lambda request, userdata: None)
for k in range(6):
    queue.start_async([ones, ones], k)
request = compiled.create_infer_request()
request.set_callback(lambda _: request.start_async())
request.start_async([ones, ones])
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "keep.append(keep); del core, model", "queue.wait_all()"])
def test_the_end_is_quiet(end):
    script = ENDS.format(product=PRODUCT, end=end)
    done = subprocess.run([sys.executable, "-X", "dev", "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_only_the_library_makes(ov, gather):
    compiled = ov.compile_model(gather, "CPU")
    tensor, request = ov.Tensor(DATA), compiled.create_infer_request()
    for wrong in (
        lambda: ov.Model(5),
        lambda: ov.CompiledModel(5),
        lambda: ov.ConstOutput(5, "input", 0, None),
        lambda: ov.InferRequest(tensor),
        lambda: ov.AsyncInferQueue(tensor, 1),
        lambda: ov.preprocess.PrePostProcessor(tensor),
        lambda: request.set_input_tensor(0, compiled),
        lambda: request.set_callback(5),
        lambda: ov.Core().compile_model(tensor),
        lambda: ov.Core().compile_model(compiled),
    ):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_process_that_is_forked():
    """It runs models as its parent does; what was running stays in the parent. It ends as Python ends."""
    script = f"""
import os, sys, numpy as np, vinelift as ov
model = ov.Core().read_model({PRODUCT!r})
model.reshape({{"a": [1000, 1000], "b": [1000, 1000]}})
compiled = ov.compile_model(model)
ones = np.ones((1000, 1000), np.float32)
compiled([ones, ones])
request = compiled.create_infer_request()
request.start_async([ones, ones])
child = os.fork()
if child == 0:
    assert (compiled([ones, ones])[0] == 1000).all()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
request.wait()
assert (request.results[0] == 1000).all()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
