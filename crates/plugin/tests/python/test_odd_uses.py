"""Uses that programs do not intend: each gives the right answer or an error."""

import gc
import random

import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, dense, named
from openvino import opset13 as op

X = np.array([-1, 2], np.float32)


def relu(name="x"):
    x = named(op.parameter([2], np.float32), name)
    return ov.Model([op.result(op.relu(x))], [x], name)


def test_names_hold_any_characters(core):
    name = "a<b>&\"'\n\t\x01é,;"
    compiled = core.compile_model(relu(name), DEVICE)
    assert compiled([X])[0].tolist() == [0, 2]
    assert compiled.input(0).names == {name}
    assert name in core.query_model(relu(name), DEVICE)
    again = core.import_model(compiled.export_model().getvalue(), DEVICE)
    assert again.input(0).names == {name}


def test_blobs_that_were_changed(core):
    blob, numbers = core.compile_model(dense(), DEVICE).export_model().getvalue(), random.Random(0)
    refused = 0
    for _ in range(300):
        changed = bytearray(blob)
        for _ in range(numbers.randint(1, 4)):
            changed[numbers.randrange(16, len(changed))] = numbers.randrange(256)
        try:
            compiled = core.import_model(bytes(changed), DEVICE)
            compiled([np.ones(list(compiled.input(0).shape), np.float32)])
        except (RuntimeError, ValueError):
            refused += 1
    assert refused > 100


def test_models_of_nothing_much(core):
    constant = ov.Model([op.result(op.constant(np.float32(3)))], [])
    assert core.compile_model(constant, DEVICE)([])[0] == 3
    x = named(op.parameter([-1, -1], np.float32), "x")
    passed_on = ov.Model([op.result(x), op.result(x)], [x])
    square = np.arange(4, dtype=np.float32).reshape(2, 2)
    found = core.compile_model(passed_on, DEVICE)([square])
    assert all(value.tolist() == square.tolist() for value in found.values())


def test_an_unknown_rank(core):
    x = op.parameter(ov.PartialShape.dynamic(), ov.Type.f32)
    compiled = core.compile_model(ov.Model([op.result(op.exp(x))], [x]), DEVICE)
    for shape in [(1, 2, 3), (4,), (2, 0)]:
        assert compiled([np.zeros(shape, np.float32)])[0].shape == shape


def test_too_large(core):
    x = op.parameter([-1], np.float32)
    model = ov.Model([op.result(op.tile(x, op.constant(np.array([1 << 40]))))], [x])
    with pytest.raises(RuntimeError, match="out of memory|too large"):
        core.compile_model(model, DEVICE)([np.ones(1024, np.float32)])


def test_objects_go_in_any_order(core):
    for number in range(40):
        compiled = core.compile_model(relu(), DEVICE, {"NUM_STREAMS": 2})
        request, done = compiled.create_infer_request(), []
        request.set_callback(lambda _, done=done: done.append(1), None)
        request.start_async([X])
        del compiled
        if number % 2:
            request.wait()
        del request
        gc.collect()
