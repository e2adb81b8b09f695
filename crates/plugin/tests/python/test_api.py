"""OpenVINO's Python interface with the device."""

import threading

import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, WORDS, compare, dense, named, outputs, words
from openvino import opset13 as op
from openvino.preprocess import PrePostProcessor

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7 - 0.4


def expected(core, x=X):
    return outputs(core, dense(*x.shape), "CPU", [x], {"INFERENCE_PRECISION_HINT": "f32"})[0]


def test_device(core):
    assert DEVICE in core.available_devices
    assert "Vinelift" in core.get_property(DEVICE, "FULL_DEVICE_NAME")
    for key in core.get_property(DEVICE, "SUPPORTED_PROPERTIES"):
        core.get_property(DEVICE, key)
    compiled = core.compile_model(dense(), DEVICE)
    for key in compiled.get_property("SUPPORTED_PROPERTIES"):
        compiled.get_property(key)
    assert compiled.get_property("NETWORK_NAME") == "dense"
    assert compiled.get_property("EXECUTION_DEVICES") == [DEVICE]


def test_one_run(core):
    compare(core, dense(), [X])
    compiled = core.compile_model(dense(), DEVICE)
    found = compiled({"x": X})
    np.testing.assert_allclose(found["y"], expected(core), rtol=1e-6)
    np.testing.assert_allclose(found[0], found["y"])


def test_model_from_a_path(core, tmp_path):
    path = tmp_path / "dense.xml"
    ov.save_model(dense(), path, compress_to_fp16=False)
    compiled = core.compile_model(path, DEVICE)
    np.testing.assert_allclose(compiled([X])[0], expected(core), rtol=1e-6)


def test_the_model_may_go(core):
    """Constants are used where they are; they stay though the program lets go of the model, or changes it."""
    model = dense()
    compiled = core.compile_model(model, DEVICE)
    for node in model.get_ops():
        if node.get_type_name() == "Constant":
            zeros = op.constant(np.zeros(list(node.shape), np.float32))
            for target in node.output(0).get_target_inputs():
                target.replace_source_output(zeros.output(0))
    del model, node, zeros, target
    np.testing.assert_allclose(compiled([X])[0], expected(core), rtol=1e-6)


@pytest.mark.parametrize(
    "config",
    [
        {"PERFORMANCE_HINT": "LATENCY", "PERF_COUNT": True},
        {"PERFORMANCE_HINT": "THROUGHPUT", "PERFORMANCE_HINT_NUM_REQUESTS": 2},
        {"NUM_STREAMS": "2", "INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32"},
        {"INFERENCE_PRECISION_HINT": ov.Type.bf16, "KV_CACHE_PRECISION": ov.Type.u8, "CACHE_DIR": ""},
        {"EXECUTION_MODE_HINT": "ACCURACY", "ENABLE_CPU_PINNING": False, "LOG_LEVEL": "LOG_NONE"},
        {"VINELIFT_LEVEL": "interpreted", "VINELIFT_INDEX_POLICY": "error"},
        {"VINELIFT_SPECIALIZATION": "always", "VINELIFT_VECTORS": "128"},
    ],
)
def test_properties(core, config):
    found = outputs(core, dense(), DEVICE, [X], config)[0]
    np.testing.assert_allclose(found, expected(core), rtol=1e-6)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NO_SUCH": 1}, "Unsupported property NO_SUCH"),
        ({"PERFORMANCE_HINT": "FAST"}, "PERFORMANCE_HINT cannot be `FAST`"),
        ({"INFERENCE_NUM_THREADS": -3}, "must be from 0 to 4096, found -3"),
        ({"VINELIFT_LEVEL": "fast"}, "VINELIFT_LEVEL must be one of interpreted, fused, compiled, scheduled, found `fast`"),
        ({"VINELIFT_SPECIALIZATION": "cold"}, "VINELIFT_SPECIALIZATION must be one of generic, hot, always, found `cold`"),
        ({"VINELIFT_VECTORS": 64}, "VINELIFT_VECTORS must be one of widest, 256, 128, found `64`"),
        ({"DEVICE_ID": "1"}, "there is one device VINELIFT"),
        ({"KV_CACHE_PRECISION": ov.Type.i8}, "KV_CACHE_PRECISION must be one of f32, f16, bf16, u8, dynamic, found `i8`"),
    ],
)
def test_wrong_properties(core, config, message):
    with pytest.raises(RuntimeError, match=message):
        core.compile_model(dense(), DEVICE, config)


def test_properties_of_a_compiled_model(core):
    compiled = core.compile_model(dense(), DEVICE, {"NUM_STREAMS": 2, "PERFORMANCE_HINT": "THROUGHPUT"})
    assert compiled.get_property("NUM_STREAMS") == 2
    assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 2
    assert compiled.get_property("VINELIFT_SPECIALIZATION") == "hot"
    with pytest.raises(RuntimeError, match="cannot be changed"):
        compiled.set_property({"NUM_STREAMS": 1})
    with pytest.raises(RuntimeError, match="Unsupported property NO_SUCH"):
        compiled.get_property("NO_SUCH")


@pytest.mark.parametrize(("specialization", "plans"), [("generic", 1), ("always", 3)])
def test_compilations_are_counted(core, specialization, plans):
    model = dense()
    model.reshape({"x": [-1, 3]})
    compiled = core.compile_model(model, DEVICE, {"VINELIFT_SPECIALIZATION": specialization})
    for rows in [4, 7, 9, 4, 7]:
        compiled([np.ones((rows, 3), np.float32)])
    assert compiled.get_property("VINELIFT_COMPILATIONS") == plans
    assert compiled.get_property("VINELIFT_CODE_BYTES") > 0
    assert compiled.get_property("VINELIFT_PACKED_BYTES") >= 0


def test_queue_with_callbacks(core):
    compiled = core.compile_model(dense(-1, 3), DEVICE, {"PERFORMANCE_HINT": "THROUGHPUT"})
    queue, found = ov.AsyncInferQueue(compiled, 3), {}
    queue.set_callback(lambda request, number: found.update({number: request.get_output_tensor().data.copy()}))
    for number in range(40):
        queue.start_async({0: np.full((1 + number % 5, 3), number / 40, np.float32)}, number)
    queue.wait_all()
    assert sorted(found) == list(range(40))
    for number, value in found.items():
        x = np.full((1 + number % 5, 3), number / 40, np.float32)
        np.testing.assert_allclose(value, expected(core, x), rtol=1e-6)


def test_errors_reach_callbacks_and_waits(core):
    data = named(op.parameter([4], np.float32), "data")
    indices = named(op.parameter([2], np.int64), "indices")
    model = ov.Model([op.result(op.gather_elements(data, indices, 0))], [data, indices])
    request = core.compile_model(model, DEVICE).create_infer_request()
    feeds = {"data": np.zeros(4, np.float32), "indices": np.array([1, 9])}
    with pytest.raises(RuntimeError, match=r"`indices`\[1\] is 9, expected -4..=3"):
        request.infer(feeds)
    request.start_async(feeds)
    with pytest.raises(RuntimeError, match="is 9"):
        request.wait()
    feeds["indices"] = np.array([1, -4])
    assert request.infer(feeds)[0].tolist() == [0, 0]


def long_run():
    """A loop of many small steps."""
    x = named(op.parameter([256], np.float32), "x")
    step = named(op.parameter([256], np.float32), "step")
    body = ov.Model([op.constant(True, ov.Type.boolean), op.sin(step)], [step])
    loop = op.loop(op.constant(np.int64(10_000_000)), op.constant(True, ov.Type.boolean))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(step, x.output(0), body.results[1].output(0))
    return ov.Model([op.result(loop.get_iter_value(body.results[1].output(0), -1))], [x])


def test_cancel(core):
    request = core.compile_model(long_run(), DEVICE).create_infer_request()
    for _ in range(2):
        request.start_async({0: np.ones(256, np.float32)})
        assert not request.wait_for(50)
        request.cancel()
        with pytest.raises(RuntimeError, match="[Cc]ancel"):
            request.wait()


def test_a_running_request_is_busy(core):
    request = core.compile_model(long_run(), DEVICE).create_infer_request()
    request.start_async({0: np.ones(256, np.float32)})
    with pytest.raises(RuntimeError, match="[Bb]usy"):
        request.infer()
    request.cancel()
    del request


def test_dynamic_shapes(core):
    compiled = core.compile_model(dense(-1, 3), DEVICE)
    for rows in [1, 5, 0, 17, 5, 1]:
        x = np.linspace(-1, 1, rows * 3, dtype=np.float32).reshape(rows, 3)
        found = compiled([x])[0]
        assert found.shape == (rows, 4)
        if rows:
            np.testing.assert_allclose(found, expected(core, x), rtol=1e-6, atol=1e-6)


def test_reshape(core):
    model = dense(-1, 3)
    model.reshape({"x": [2, 3]})
    assert core.compile_model(model, DEVICE).output(0).shape == [2, 4]
    compare(core, model, [X])


def test_wrong_inputs(core):
    request = core.compile_model(dense(), DEVICE).create_infer_request()
    with pytest.raises(RuntimeError, match=r"must be of shape \[2,3\], found \[3,3\]"):
        request.set_tensor("x", ov.Tensor(np.zeros((3, 3), np.float32)))
    with pytest.raises(RuntimeError, match="must be of f32, found i32"):
        request.set_tensor("x", ov.Tensor(np.zeros((2, 3), np.int32)))
    with pytest.raises(RuntimeError):
        request.get_tensor("no such")


def test_tensors_are_changed_in_place(core):
    request = core.compile_model(dense(-1, 3), DEVICE).create_infer_request()
    tensor = request.get_tensor("x")
    assert tensor.shape == [0, 3]
    for x in (X, X[:1], np.concatenate([X, X])):
        tensor.shape = x.shape
        tensor.data[:] = x
        request.infer()
        np.testing.assert_allclose(request.get_tensor("y").data, expected(core, x), rtol=1e-6)


def test_outputs_are_written_where_the_program_has_them(core):
    request = core.compile_model(dense(), DEVICE).create_infer_request()
    memory = np.zeros((2, 4), np.float32)
    request.set_tensor("y", ov.Tensor(memory, shared_memory=True))
    request.infer([X])
    np.testing.assert_allclose(memory, expected(core), rtol=1e-6)
    # One that is too small grows, if it is the tensor's own.
    request = core.compile_model(dense(-1, 3), DEVICE).create_infer_request()
    grown = ov.Tensor(ov.Type.f32, ov.Shape([0, 4]))
    request.set_output_tensor(grown)
    request.infer([X])
    np.testing.assert_allclose(grown.data, expected(core), rtol=1e-6)


def test_an_output_in_the_memory_of_an_input(core):
    x = named(op.parameter([3, 3], np.float32), "x")
    model = ov.Model([op.result(op.matmul(x, x, False, False))], [x])
    request = core.compile_model(model, DEVICE).create_infer_request()
    memory = np.arange(9, dtype=np.float32).reshape(3, 3)
    product = memory @ memory
    request.set_input_tensor(ov.Tensor(memory, shared_memory=True))
    request.set_output_tensor(ov.Tensor(memory, shared_memory=True))
    request.infer()
    np.testing.assert_array_equal(memory, product)


def test_parts_of_tensors(core):
    request = core.compile_model(dense(-1, 3), DEVICE).create_infer_request()
    whole = np.linspace(-1, 1, 40, dtype=np.float32).reshape(8, 5)
    part = ov.Tensor(ov.Tensor(whole, shared_memory=True), [2, 1], [6, 4])
    request.set_tensor("x", part)
    request.infer()
    x = np.ascontiguousarray(whole[2:6, 1:4])
    np.testing.assert_allclose(request.get_tensor("y").data, expected(core, x), rtol=1e-6, atol=1e-6)


def test_batch_of_tensors(core):
    model = dense(-1, 3)
    model.inputs[0].get_node().set_layout(ov.Layout("N?"))
    request = core.compile_model(model, DEVICE).create_infer_request()
    request.set_input_tensors(0, [ov.Tensor(np.ascontiguousarray(X[k : k + 1])) for k in range(2)])
    request.infer()
    np.testing.assert_allclose(request.get_output_tensor().data, expected(core), rtol=1e-6)


def test_times_of_kernels(core):
    request = core.compile_model(dense(), DEVICE, {"PERF_COUNT": True}).create_infer_request()
    request.infer([X])
    infos = request.profiling_info
    assert infos and all(str(info.status) == "Status.EXECUTED" for info in infos)
    assert any("y" == info.node_name for info in infos)


def test_many_threads(core):
    compiled, failures = core.compile_model(dense(-1, 3), DEVICE), []
    wanted = {rows: expected(core, np.ones((rows, 3), np.float32)) for rows in range(1, 9)}

    def work(seed):
        request = compiled.create_infer_request()
        for k in range(60):
            rows = 1 + (seed + k) % 8
            found = request.infer([np.ones((rows, 3), np.float32)])[0]
            if not np.allclose(found, wanted[rows]):
                failures.append(rows)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


def test_preprocessing(core):
    image = named(op.parameter([1, 3, 8, 8], np.float32), "image")
    model = ov.Model([op.result(op.reduce_mean(image, op.constant(np.array([2, 3])), False))], [image])
    steps = PrePostProcessor(model)
    info = steps.input("image")
    info.tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC")).set_spatial_static_shape(16, 12)
    info.model().set_layout(ov.Layout("NCHW"))
    info.preprocess().convert_element_type(ov.Type.f32).resize(ov.preprocess.ResizeAlgorithm.RESIZE_LINEAR).mean([1.0, 2.0, 3.0]).scale(2.0)
    pixels = np.random.default_rng(0).integers(0, 256, (1, 16, 12, 3), np.uint8)
    compare(core, steps.build(), [pixels], 1e-5)


def test_strings(core):
    text = named(op.parameter([-1], ov.Type.string), "text")
    model = ov.Model([op.result(text)], [text])
    compiled = core.compile_model(model, DEVICE)
    words = np.array(["one", "", "zwölf", "x" * 100])
    for found in (compiled([words])[0], compiled([words[:2]])[0]):
        assert found.tolist() == words[: len(found)].tolist()


def test_constant_strings(core):
    found = core.compile_model(words(core), DEVICE)([np.array([3, 1, 2])])[0]
    assert found.tolist() == [WORDS[3], WORDS[1], WORDS[2]]


@pytest.mark.parametrize("name", ["u4", "i4", "nf4", "u1", "f8e4m3", "f8e5m2", "f16", "bf16", "u8", "i8"])
def test_types_of_constants(core, name):
    kind, rng = getattr(ov.Type, name), np.random.default_rng(3)
    tensor = ov.Tensor(kind, ov.Shape([4, 8]))
    size = tensor.byte_size
    data = rng.integers(0, 60, size).astype(np.uint8)
    constant = ov.op.Constant(ov.Tensor(data, ov.Shape([4, 8]), kind))
    x = named(op.parameter([2, 8], np.float32), "x")
    model = ov.Model([op.result(op.matmul(x, op.convert(constant, ov.Type.f32), False, True))], [x])
    compare(core, model, [rng.standard_normal((2, 8)).astype(np.float32)], 1e-5)


@pytest.mark.parametrize("group", [32, 2**63 - 1])
def test_factors_of_compressed_weights_are_quantised_where_that_is_asked_for(core, group):
    rng = np.random.default_rng(5)
    codes, zeros = rng.integers(0, 256, (64, 2, 128)), rng.integers(0, 256, (64, 2, 1))
    scales = rng.random((64, 2, 1)).astype(np.float32)
    of = lambda values: op.convert(op.constant(values.astype(np.uint8)), ov.Type.f32)
    weights = op.multiply(op.subtract(of(codes), of(zeros)), op.constant(scales))
    x = named(op.parameter([-1, 256], np.float32), "x")
    y = op.matmul(x, op.reshape(weights, op.constant([64, 256]), False), False, True)
    model = ov.Model([op.result(y)], [x])
    compiled = core.compile_model(model, DEVICE, {"DYNAMIC_QUANTIZATION_GROUP_SIZE": group})
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == group
    plain = core.compile_model(model, DEVICE)
    assert plain.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 0
    values = rng.standard_normal((3, 256)).astype(np.float32)
    exact = ((codes - zeros) * scales.astype(np.float64)).reshape(64, 256)
    wanted = values @ exact.T
    # Each element is off by at most a 254th of the largest in its row.
    bound = np.abs(values).max(-1, keepdims=True) / 254 * np.abs(exact).sum(-1) + 1e-3
    found = compiled([values])[0]
    assert (np.abs(found - wanted) <= bound).all()
    np.testing.assert_allclose(plain([values])[0], wanted, rtol=1e-3, atol=1e-2)
    assert np.abs(found - plain([values])[0]).max() > 1e-2


def test_contexts_are_refused(core):
    for get in (lambda: core.get_default_context(DEVICE), lambda: core.create_context(DEVICE, {})):
        with pytest.raises(RuntimeError, match="has no remote contexts"):
            get()
