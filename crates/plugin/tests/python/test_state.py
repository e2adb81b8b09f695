"""Variables of requests."""

import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, counter, named
from openvino import opset13 as op

ROW = np.array([[1, 2]], np.float32)


def test_runs_go_on_from_the_last(core):
    for device in ("CPU", DEVICE):
        request = core.compile_model(counter(), device).create_infer_request()
        (state,) = request.query_state()
        assert state.name == "held" and state.state.shape == [0, 2]
        for rows in (1, 2, 3):
            assert request.infer([ROW * rows])[0].shape == (rows, 2)
        assert state.state.data.tolist() == [[1, 2], [2, 4], [3, 6]]
        request.reset_state()
        assert request.infer([ROW])[0].tolist() == [[1, 2]]


def test_states_are_set(core):
    request = core.compile_model(counter(), DEVICE).create_infer_request()
    (state,) = request.query_state()
    state.state = ov.Tensor(np.full((2, 2), 9, np.float32))
    assert request.infer([ROW])[0].tolist() == [[9, 9], [9, 9], [1, 2]]
    # As pipelines cut a cache of keys and values.
    kept = ov.Tensor(state.state, [0, 0], [2, 2])
    state.state = ov.Tensor(np.ascontiguousarray(kept.data))
    assert request.infer([ROW])[0].tolist() == [[9, 9], [9, 9], [1, 2]]
    with pytest.raises(RuntimeError, match="variable 'held' must be"):
        state.state = ov.Tensor(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("precision", ["f16", "bf16", "u8"])
def test_states_in_fewer_bits_have_the_type_of_the_model(core, precision):
    row = np.array([[0.1, -0.7]], np.float32)
    found = {
        "f16": row.astype(np.float16).astype(np.float32),
        "bf16": np.array([[0.10009765625, -0.69921875]], np.float32),
        # The least and the largest element of a row are kept.
        "u8": row,
    }[precision]
    compiled = core.compile_model(counter(), DEVICE, {"KV_CACHE_PRECISION": precision})
    assert compiled.get_property("KV_CACHE_PRECISION") == getattr(ov.Type, precision)
    request = compiled.create_infer_request()
    np.testing.assert_allclose(request.infer([row])[0], found, rtol=1e-6)
    (state,) = request.query_state()
    assert state.name == "held" and state.state.element_type == ov.Type.f32
    np.testing.assert_allclose(state.state.data, found, rtol=1e-6)
    state.state = ov.Tensor(np.repeat(row, 3, 0))
    np.testing.assert_allclose(request.infer([row])[0], np.repeat(found, 4, 0), rtol=1e-6)
    request.reset_state()
    assert request.infer([row])[0].shape == (1, 2)


def test_one_state_is_reset(core):
    x = named(op.parameter([2], np.float32), "x")
    sums, sinks = [], []
    for name in ("a", "b"):
        held = op.read_value(op.constant(np.zeros(2, np.float32)), name, ov.Type.f32, ov.PartialShape([2]))
        sums.append(op.add(held, x))
        sinks.append(op.assign(sums[-1], name))
    model = ov.Model([op.result(one) for one in sums], sinks, [x], "two")
    for device in ("CPU", DEVICE):
        request = core.compile_model(model, device).create_infer_request()
        ones = np.ones(2, np.float32)
        request.infer([ones])
        next(state for state in request.query_state() if state.name == "b").reset()
        found = request.infer([ones])
        assert found[0].tolist() == [2, 2] and found[1].tolist() == [1, 1]


def test_requests_have_their_own(core):
    compiled = core.compile_model(counter(), DEVICE)
    one, other = compiled.create_infer_request(), compiled.create_infer_request()
    one.infer([ROW])
    assert other.infer([ROW])[0].shape == (1, 2)
    (state,) = one.query_state()
    del one, compiled
    assert state.state.data.tolist() == [[1, 2]]
