"""Tensors, and whose memory is whose."""

import gc
import weakref

import numpy as np
import pytest
from conftest import DATA, INDICES, one_layer


def test_memory_is_shared(ov):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    shared, copied = ov.Tensor(array, shared_memory=True), ov.Tensor(array)
    assert np.shares_memory(shared.data, array) and not np.shares_memory(copied.data, array)
    shared.data[0, 0] = 50
    assert array[0, 0] == 50 and copied.data[0, 0] == 0
    own = ov.Tensor(ov.Type.i64, [2, 2])
    assert np.shares_memory(own.data, own.data) and (own.data == 0).all()
    own.data[:] = [[1, 2], [3, 4]]
    assert own.data.tolist() == [[1, 2], [3, 4]]
    assert (own.shape, own.size, own.byte_size, own.element_type) == ([2, 2], 4, 32, ov.Type.i64)
    assert own.strides == (16, 8) and own.is_continuous()


def test_memory_of_a_request_is_shared(ov, gather):
    request = ov.compile_model(gather, "CPU").create_infer_request()
    data, indices, out = np.array(DATA), np.array(INDICES), np.zeros((2, 2), np.float32)
    request.infer([data, indices], share_inputs=True)
    assert np.shares_memory(request.get_input_tensor(0).data, data)
    request.infer([data, indices])
    assert not np.shares_memory(request.get_input_tensor(0).data, data)
    request.set_output_tensor(ov.Tensor(out, shared_memory=True))
    assert np.shares_memory(request.infer(share_outputs=True)[0], out)
    assert not np.shares_memory(request.infer()[0], out)
    assert request.get_output_tensor() is request.get_output_tensor(0) is request.get_tensor("out")


def test_large_inputs_of_calls_are_not_copied_and_are_right(ov):
    compiled = ov.compile_model(ov.Core().read_model(one_layer("ReLU", "opset1")), "CPU")
    for count in (10, 100_000, 10, 200_000, 100_000):
        array = np.linspace(-1, 1, count, dtype=np.float32)
        assert (compiled(array)[0] == np.maximum(array, 0)).all()
        assert (compiled(array, share_inputs=False)[0] == np.maximum(array, 0)).all()


def test_an_array_keeps_the_memory_of_a_tensor_that_moves(ov):
    tensor = ov.Tensor(ov.Type.f32, [4])
    before = tensor.data
    before[:] = 7
    tensor.set_shape([1_000_000])
    after = tensor.data
    assert after.shape == (1_000_000,) and not np.shares_memory(before, after)
    del tensor
    gc.collect()
    after[:] = 1
    assert before.tolist() == [7] * 4 and after[-1] == 1


def test_an_array_keeps_the_memory_of_an_output_that_moves(ov):
    compiled = ov.compile_model(ov.Core().read_model(one_layer("ReLU", "opset1")), "CPU")
    request = compiled.create_infer_request()
    views = []
    for count in (3, 100, 10_000, 1_000_000, 5):
        views.append(request.infer([np.full(count, count, np.float32)], share_outputs=True)[0])
        assert views[-1].shape == (count,) and (views[-1] == count).all()
    del request, compiled
    gc.collect()
    assert [view.shape[0] for view in views] == [3, 100, 10_000, 1_000_000, 5]
    assert (views[2] == 10_000).all()


def test_a_tensor_keeps_its_array(ov):
    array = np.arange(1000, dtype=np.float64)
    kept = weakref.ref(array)
    tensor = ov.Tensor(array, shared_memory=True)
    del array
    gc.collect()
    assert kept() is not None and tensor.data.sum() == 499500
    view = tensor.data
    del tensor
    gc.collect()
    assert kept() is not None and view.sum() == 499500
    del view
    gc.collect()
    assert kept() is None


def test_a_request_keeps_its_tensors(ov, gather):
    request = ov.compile_model(gather, "CPU").create_infer_request()
    array = np.array(DATA)
    kept = weakref.ref(array)
    request.set_tensor("data", ov.Tensor(array, shared_memory=True))
    request.set_tensor("indices", ov.Tensor(INDICES, shared_memory=True))
    del array
    gc.collect()
    assert kept() is not None
    request.infer()
    del request
    gc.collect()
    assert kept() is None


def test_what_cannot_be_shared(ov):
    array = np.zeros((4, 4), np.float32)
    for wrong in (array[:, ::2], array.T[1:], array.astype(">f4")):
        with pytest.raises(RuntimeError):
            ov.Tensor(wrong, shared_memory=True)
        assert ov.Tensor(wrong).shape == wrong.shape
    with pytest.raises(TypeError):
        ov.Tensor(np.zeros(2, np.complex64))
    shared = ov.Tensor(array, shared_memory=True)
    shared.set_shape([2, 3])
    assert shared.data.shape == (2, 3) and np.shares_memory(shared.data, array)
    with pytest.raises(RuntimeError):
        shared.set_shape([100])
    assert shared.shape == [2, 3]
    for shape in ([-1], [2**62, 2**62], [2**61]):
        with pytest.raises((RuntimeError, TypeError)):
            ov.Tensor(ov.Type.f32, shape)


def test_what_must_not_be_written(ov, gather):
    frozen = np.zeros((2, 2), np.float32)
    frozen.flags.writeable = False
    request = ov.compile_model(gather, "CPU").create_infer_request()
    tensor = ov.Tensor(frozen, shared_memory=True)
    assert not tensor.data.flags.writeable
    request.set_tensor("data", tensor)
    with pytest.raises(RuntimeError, match="cannot be written"):
        request.set_output_tensor(tensor)
    with pytest.raises(ValueError):
        tensor.data = 1


def test_empty_and_scalar(ov):
    assert ov.Tensor(np.zeros((0, 3), np.float32), shared_memory=True).data.shape == (0, 3)
    assert ov.Tensor(ov.Type.f32, [0]).data.shape == (0,)
    assert ov.Tensor(ov.Type.f32, []).data.shape == ()
    assert ov.Tensor(np.float32(3)).data == 3
    compiled = ov.compile_model(ov.Core().read_model(one_layer("ReLU", "opset1")), "CPU")
    assert compiled(np.zeros(0, np.float32))[0].shape == (0,)


def test_strings(ov):
    tensor = ov.Tensor(np.array([["a", "größer"], ["", "x\n"]]))
    assert tensor.element_type == ov.Type.string and tensor.shape == [2, 2] and tensor.byte_size == 0
    assert tensor.str_data.tolist() == [["a", "größer"], ["", "x\n"]] == tensor.data.tolist()
    assert tensor.bytes_data[0, 1] == "größer".encode()
    tensor.str_data = [["1", "2"], ["3", "4"]]
    assert tensor.str_data.tolist() == [["1", "2"], ["3", "4"]]
    assert ov.Tensor(["a", "bc"]).str_data.tolist() == ["a", "bc"]
    assert ov.Tensor(np.array([b"a", b"bc"])).str_data.tolist() == ["a", "bc"]
    with pytest.raises(RuntimeError):
        tensor.str_data = ["1"]
    with pytest.raises(ValueError):
        ov.Tensor(np.array(["a\0b"], object))
    with pytest.raises(TypeError):
        ov.Tensor(np.array(["a", 3], object))
    with pytest.raises(RuntimeError):
        ov.Tensor(DATA).str_data


def test_types_that_numpy_has_not(ov):
    packed = ov.Tensor(np.array([0x21, 0x43], np.uint8), [4], ov.Type.u4)
    assert packed.shape == [4] and packed.byte_size == 2 and packed.data.tolist() == [0x21, 0x43]
    bits = ov.Tensor(ov.Type.bf16, [2])
    assert bits.data.dtype == np.uint16 and bits.byte_size == 4
    with pytest.raises(RuntimeError):
        ov.Tensor(np.zeros(1, np.uint8), [4], ov.Type.u4)
    compiled = ov.compile_model(ov.Core().read_model(one_layer("ReLU", "opset1", "bf16")), "CPU")
    values = np.array([-1, 0, 1.5, 3.0078125, 1e30], np.float32)
    found = compiled(values)[0]
    as_floats = (found.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(as_floats, np.maximum(values, 0), rtol=2**-8)
    assert found[2] == 0x3FC0


def test_booleans(ov):
    compiled = ov.compile_model(ov.Core().read_model(one_layer("LogicalNot", "opset1", "boolean")), "CPU")
    found = compiled(np.array([True, False, True]))[0]
    assert found.dtype == np.bool_ and found.tolist() == [False, True, False]


def test_copies(ov):
    a, b = ov.Tensor(DATA), ov.Tensor(ov.Type.f32, [1])
    a.copy_to(b)
    assert b.shape == [2, 2] and (b.data == DATA).all()
    b.copy_from(DATA * 2)
    assert (b.data == DATA * 2).all()
    with pytest.raises(RuntimeError):
        a.copy_to(ov.Tensor(ov.Type.i32, [2, 2]))
    assert (np.asarray(a) == DATA).all() and np.asarray(a, np.int64).dtype == np.int64


def test_dlpack(ov):
    tensor = ov.Tensor(ov.Type.f32, [2, 3])
    assert tensor.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(tensor)
    assert np.shares_memory(array, tensor.data)
    tensor.data[:] = 5
    del tensor
    gc.collect()
    assert array.tolist() == [[5] * 3] * 2
    source = np.arange(6, dtype=np.int64)
    back = ov.Tensor.from_dlpack(source)
    assert back.element_type == ov.Type.i64 and np.shares_memory(back.data, source)
    assert ov.Tensor.from_dlpack(ov.Tensor(source)).data.tolist() == list(range(6))


def test_an_output_whose_tensor_is_given_another_shape(ov, gather):
    request = ov.compile_model(gather, "CPU").create_infer_request()
    expected = request.infer([DATA, INDICES])[0]
    for shape in ([9, 9], [1], [2, 2]):
        request.get_output_tensor().set_shape(shape)
        request.get_input_tensor(0).set_shape(shape)
        assert request.infer([DATA, INDICES])[0].tolist() == expected.tolist()
        assert request.results[0].shape == (2, 2)


def test_a_tensor_of_two_requests(ov, gather):
    """One has an output of a shape that is known, the other moves the tensor's memory."""
    grows = ov.compile_model(
        ov.Core().read_model(one_layer("ReLU", "opset1", dims=("?", "?"))), "CPU"
    ).create_infer_request()
    request = ov.compile_model(gather, "CPU").create_infer_request()
    tensor = ov.Tensor(ov.Type.f32, [2, 2])
    request.set_output_tensor(tensor)
    grows.set_output_tensor(tensor)
    expected = request.infer([DATA, INDICES])[0]
    grows.infer([np.ones((100, 100), np.float32)])
    assert tensor.data.shape == (100, 100)
    assert request.infer([DATA, INDICES])[0].tolist() == expected.tolist() == tensor.data.tolist()
