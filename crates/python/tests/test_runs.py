"""Scripts that run the same with both packages."""

import io
import threading

import numpy as np
import pytest
from conftest import DATA, EXPECTED, INDICES, SAMPLES, one_layer

# The network takes the six for a one.
NAMES = "zero one two three four five one seven eight nine".split()
ADDS_UP = str(SAMPLES / "read_value/opset6_adds_up.xml")


def test_ways_to_pass_inputs(either, gather):
    compiled = either.Core().compile_model(gather, "CPU")
    data, indices = compiled.input(0), compiled.input("indices")
    for inputs in (
        {"data": DATA, "indices": INDICES},
        {0: DATA, 1: INDICES},
        {data: DATA, indices: INDICES},
        {"data": either.Tensor(DATA), 1: either.Tensor(INDICES, shared_memory=True)},
        [DATA, INDICES],
        (DATA, INDICES),
        [DATA.astype(np.float64), INDICES.astype(np.int64)],
        [np.asfortranarray(DATA), np.ascontiguousarray(INDICES.T).T],
    ):
        found = compiled(inputs)
        assert len(found) == 1
        for key in (0, "out", compiled.output(0), compiled.output("out"), compiled.output()):
            assert (found[key] == EXPECTED).all()
            assert found[key].dtype == np.float32


def test_one_array(either, digits, pixels):
    compiled = either.compile_model(digits, "CPU")
    for inputs in (pixels, [pixels], {"pixels": pixels}, either.Tensor(pixels)):
        found = compiled(inputs)
        assert found["digit"].reshape(-1).tolist() == NAMES
        assert found["digit"].dtype.kind == "U"
        np.testing.assert_allclose(found["probabilities"].sum(1), 1, rtol=1e-5)


def test_results_are_as_those_of_openvino(ov, openvino, digits, pixels):
    a, b = (package.compile_model(digits, "CPU")(pixels) for package in (openvino, ov))
    assert a["digit"].tolist() == b["digit"].tolist()
    np.testing.assert_allclose(a["probabilities"], b["probabilities"], rtol=1e-4, atol=1e-6)
    assert [port.any_name for port in a] == [port.any_name for port in b]
    assert a.names() == b.names()


def test_what_a_run_gives(either, gather):
    compiled = either.compile_model(gather, "CPU")
    found = compiled([DATA, INDICES])
    assert list(found.keys()) == list(compiled.outputs)
    assert [value.tolist() for value in found.values()] == [EXPECTED.tolist()]
    assert [port.any_name for port, _ in found.items()] == ["out"]
    assert (found.to_tuple()[0] == EXPECTED).all()
    assert list(found.to_dict()) == compiled.outputs
    assert found.names() == ({"out"},)
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(KeyError):
        found[3]
    with pytest.raises(TypeError):
        found[2.5]


def test_results_are_copies(either, gather):
    compiled = either.compile_model(gather, "CPU")
    first = compiled([DATA, INDICES])[0]
    compiled([DATA * 10, INDICES])
    assert (first == EXPECTED).all()
    request = compiled.create_infer_request()
    shared = request.infer([DATA, INDICES], share_outputs=True)[0]
    assert np.shares_memory(shared, request.get_output_tensor().data)
    request.infer([DATA * 10, INDICES])
    assert (shared == EXPECTED * 10).all()


def test_ports_and_models(either, digits, gather):
    model = either.Core().read_model(digits)
    assert model.get_friendly_name() == model.friendly_name == "digits"
    assert model.is_dynamic() and len(model.inputs) == 1 and len(model.outputs) == 3
    port = model.input()
    assert (port.any_name, port.names, port.element_type) == ("pixels", {"pixels"}, either.Type.i32)
    assert port.partial_shape == either.PartialShape([-1, 64]) and str(port.partial_shape) == "[?,64]"
    assert model.output("digit").element_type == either.Type.string
    compiled = either.compile_model(gather, "CPU")
    assert compiled.input(0) == compiled.inputs[0] != compiled.inputs[1]
    assert list(compiled.output().shape) == [2, 2] and compiled.output().shape == [2, 2]
    assert len({compiled.input(0), compiled.inputs[0], compiled.input("data")}) == 1
    for wrong in (lambda: model.input("nothing"), lambda: compiled.input(), lambda: port.shape):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(IndexError):
        model.input(7)


@pytest.mark.parametrize("how", ["list", "dict", "position", "port", "partial", "text", "dimensions"])
def test_reshape(either, digits, how):
    model = either.Core().read_model(digits)
    shape = {
        "list": [2, 64],
        "dict": {"pixels": [2, 64]},
        "position": {0: (2, 64)},
        "port": {model.input(): either.PartialShape([2, 64])},
        "partial": either.PartialShape([2, 64]),
        "text": "[2,64]",
        "dimensions": [either.Dimension(2), 64],
    }[how]
    model.reshape(shape)
    assert model.input().partial_shape == [2, 64] and list(model.output(2).shape) == [2, 10]
    compiled = either.compile_model(model, "CPU")
    assert compiled(np.zeros((2, 64), np.int32))[1].shape == (2, 1)
    with pytest.raises(RuntimeError):
        compiled(np.zeros((3, 64), np.int32))
    model.reshape([-1, 64])
    assert model.is_dynamic()
    with pytest.raises(RuntimeError):
        model.reshape([5, 5, 5])
    with pytest.raises(RuntimeError):
        model.reshape({"nothing": [1]})


def test_shapes_that_change(either, digits, pixels):
    compiled = either.compile_model(digits, "CPU")
    request = compiled.create_infer_request()
    for count in (1, 7, 3, 10, 1):
        found = request.infer([pixels[:count]])
        assert found["probabilities"].shape == (count, 10)
        assert list(request.get_tensor("probabilities").shape) == [count, 10]
        assert (compiled(pixels[:count])["confidence"] == found["confidence"]).all()


def test_reading(either, gather, digits, tmp_path):
    core = either.Core()
    xml, weights = open(digits, "rb").read(), open(digits.replace(".xml", ".bin"), "rb").read()
    moved = tmp_path / "weights"
    moved.write_bytes(weights)
    expected = core.compile_model(digits, "CPU")(np.zeros((1, 64), np.int32))["probabilities"]
    for model in (
        core.read_model(SAMPLES / "models/digits/digits.xml"),
        core.read_model(digits, str(moved)),
        core.read_model(xml, weights),
        core.read_model(model=io.BytesIO(xml), weights=io.BytesIO(weights)),
        core.read_model(xml, either.Tensor(np.frombuffer(weights, np.uint8).copy())),
        either.Core().read_model(digits),
    ):
        found = core.compile_model(model, "CPU")(np.zeros((1, 64), np.int32))["probabilities"]
        np.testing.assert_allclose(found, expected)
    for wrong in (str(tmp_path / "nothing.xml"), b"junk"):
        with pytest.raises(RuntimeError):
            core.read_model(wrong)
    with pytest.raises(TypeError):
        core.read_model(5)
    with pytest.raises(RuntimeError):
        core.compile_model(gather, "NOTHING")


def test_wrong_inputs(either, gather):
    compiled = either.compile_model(gather, "CPU")
    request = compiled.create_infer_request()
    for call in (compiled, request.infer):
        for inputs in (
            {"nothing": DATA, "indices": INDICES},
            {5: DATA},
            {"data": DATA[0], "indices": INDICES},
            [DATA, INDICES, INDICES],
            DATA,
            "text",
        ):
            with pytest.raises(RuntimeError):
                call(inputs)
        with pytest.raises(TypeError):
            call({1.5: DATA})
        assert (call([DATA, INDICES])[0] == EXPECTED).all()
    for wrong in (
        lambda: request.get_tensor("nothing"),
        lambda: request.get_input_tensor(),
        lambda: request.get_input_tensor(7),
        lambda: request.set_tensor("data", either.Tensor(np.zeros((3, 3), np.float32))),
        lambda: request.set_tensor("data", either.Tensor(np.zeros((2, 2), np.float64))),
    ):
        with pytest.raises(RuntimeError):
            wrong()
    with pytest.raises(TypeError):
        request.set_tensor("data", DATA)


def test_tensors_of_a_request(either, gather):
    request = either.compile_model(gather, "CPU").create_infer_request()
    request.set_tensor("data", either.Tensor(DATA))
    request.set_input_tensor(1, either.Tensor(INDICES, shared_memory=True))
    request.infer()
    assert (request.get_output_tensor().data == EXPECTED).all()
    mine = np.zeros((2, 2), np.float32)
    request.set_output_tensor(either.Tensor(mine, shared_memory=True))
    request.infer()
    assert (mine == EXPECTED).all()
    request.get_tensor("data").data[:] = DATA * 2
    request.infer()
    assert (request.results["out"] == EXPECTED * 2).all() and (mine == EXPECTED * 2).all()
    assert len(request.input_tensors) == 2 and len(request.output_tensors) == 1
    assert request.model_inputs[0].any_name == "data"
    assert request.latency > 0


def test_runs_beside(either, gather):
    request = either.compile_model(gather, "CPU").create_infer_request()
    called, told = [], threading.Event()
    request.set_callback(lambda userdata: (called.append(userdata), told.set()), {"my": "data"})
    request.start_async([DATA, INDICES])
    request.wait()
    assert told.wait(10) and called == [{"my": "data"}]
    assert (request.get_output_tensor().data == EXPECTED).all()
    assert request.wait_for(1000) is True
    for k in range(20):
        request.start_async([DATA * k, INDICES])
        request.wait()
        assert (request.results[0] == EXPECTED * k).all()
    assert len(called) == 21


def test_queue(either, gather):
    compiled = either.compile_model(gather, "CPU")
    queue = either.AsyncInferQueue(compiled, 4)
    assert len(queue) == 4 and queue.is_ready() and len(list(queue)) == 4
    found, lock = {}, threading.Lock()

    def done(request, userdata):
        with lock:
            found[userdata] = request.get_output_tensor().data.copy()

    queue.set_callback(done)
    for k in range(100):
        queue.start_async({"data": DATA * k, "indices": INDICES}, userdata=k)
    queue.wait_all()
    assert sorted(found) == list(range(100))
    assert all((array == EXPECTED * k).all() for k, array in found.items())
    assert len(set(queue.userdata)) == 4 and set(queue.userdata) <= set(found)
    assert queue[0].results[0].shape == (2, 2)


def test_what_callbacks_raise(either, gather):
    queue = either.AsyncInferQueue(either.compile_model(gather, "CPU"), 2)

    def fails(request, userdata):
        raise ValueError("in the callback")

    queue.set_callback(fails)
    queue.start_async([DATA, INDICES])
    with pytest.raises(ValueError, match="in the callback"):
        queue.wait_all()


def test_variables(either):
    compiled = either.compile_model(ADDS_UP, "CPU")
    request = compiled.create_infer_request()
    name, shape = compiled.input().any_name, list(compiled.input().shape)
    ones = np.ones(shape, np.float32)
    runs = [request.infer({name: ones})[0] for _ in range(3)]
    steps = runs[1] - runs[0], runs[2] - runs[1]
    assert (steps[0] == steps[1]).all() and (steps[0] == 1).all()
    (variable,) = request.query_state()
    assert isinstance(variable.name, str) and variable.state.data.dtype == np.float32
    assert variable.state.data.reshape(-1).tolist() == runs[2].reshape(-1).tolist()
    held = variable.state.data.copy()
    variable.state = either.Tensor(held * 0 + 100)
    assert (request.infer({name: ones})[0] == 101).all()
    variable.reset()
    assert (request.infer({name: ones})[0] == runs[0]).all()
    request.reset_state()
    assert (request.infer({name: ones})[0] == runs[0]).all()
    another = compiled.create_infer_request()
    assert (another.infer({name: ones})[0] == runs[0]).all(), "requests have variables of their own"


def test_properties(either, gather):
    core = either.Core()
    assert "CPU" in core.available_devices
    assert core.get_versions("CPU")["CPU"].build_number.startswith("2026.4")
    hint = either.properties.hint
    for config in (
        {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_NUM_THREADS": 1},
        {hint.performance_mode: hint.PerformanceMode.THROUGHPUT, either.properties.inference_num_threads: 1},
    ):
        compiled = core.compile_model(gather, "CPU", config)
        assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
        assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 1
        assert compiled.get_property("NETWORK_NAME") == "gather_elements_specification_1"
        assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    compiled = core.compile_model(gather, "CPU", {hint.dynamic_quantization_group_size: 64})
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 64
    core.set_property("CPU", {"PERF_COUNT": True})
    assert core.get_property("CPU", "PERF_COUNT") is True
    assert "PERF_COUNT" in core.get_property("CPU", "SUPPORTED_PROPERTIES")
    request = core.compile_model(gather, "CPU").create_infer_request()
    request.infer([DATA, INDICES])
    assert any(info.real_time.total_seconds() >= 0 and info.node_type for info in request.profiling_info)
    for wrong in (
        lambda: core.get_property("CPU", "NOTHING"),
        lambda: core.set_property("CPU", {"NOTHING": 1}),
        lambda: core.compile_model(gather, "CPU", {"PERFORMANCE_HINT": "X"}),
    ):
        with pytest.raises(RuntimeError):
            wrong()


def test_exports(either, gather):
    core = either.Core()
    exported = core.compile_model(gather, "CPU").export_model()
    assert (core.import_model(exported, "CPU")([DATA, INDICES])[0] == EXPECTED).all()
    stream = io.BytesIO()
    core.compile_model(gather, "CPU").export_model(stream)
    assert (core.import_model(stream, "CPU")([DATA, INDICES])[0] == EXPECTED).all()


def test_preprocessing(either):
    model = either.Core().read_model(one_layer("ReLU", "opset1", dims=(1, 3, 4, 4)), b"")
    steps = either.preprocess.PrePostProcessor(model)
    steps.input().tensor().set_element_type(either.Type.u8).set_layout(either.Layout("NHWC"))
    steps.input().preprocess().convert_element_type(either.Type.f32).mean([1.0, 2.0, 3.0]).scale([2.0, 4.0, 8.0])
    steps.input().model().set_layout(either.Layout("NCHW"))
    compiled = either.compile_model(steps.build(), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert compiled.input().element_type == either.Type.u8 and list(compiled.input().shape) == [1, 4, 4, 3]
    image = np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3)
    expected = np.maximum((image - np.array([1, 2, 3], np.float32)) / np.array([2, 4, 8], np.float32), 0)
    np.testing.assert_allclose(compiled(image)[0], expected.transpose(0, 3, 1, 2), rtol=1e-6)


def test_texts_of_types_and_shapes(either):
    ov = either
    assert repr(ov.Type.f32) == "<Type: 'float32'>" and ov.Type.f32.get_type_name() == "f32"
    assert ov.Type(np.float32) == ov.Type.f32 != ov.Type.f16 and ov.Type.i64.to_dtype() == np.int64
    assert (ov.Type.u4.bitwidth, ov.Type.f64.size) == (4, 8) and ov.Type.f32.is_real() and not ov.Type.u8.is_signed()
    assert str(ov.PartialShape([1, -1, (2, 5), ov.Dimension(2, -1)])) == "[1,?,2..5,2..]"
    assert repr(ov.PartialShape("[?,3,2..5]")) == "<PartialShape: [?,3,2..5]>"
    assert ov.PartialShape.dynamic().rank.is_dynamic and str(ov.PartialShape.dynamic(2)) == "[?,?]"
    assert str(ov.PartialShape.dynamic()) == "[...]"
    assert ov.PartialShape([1, 2]).to_shape() == ov.Shape([1, 2]) == [1, 2] == ov.Shape("[1,2]")
    assert ov.PartialShape([1, -1])[1].is_dynamic and list(ov.PartialShape([1, 2])) == [1, 2]
    assert (ov.Dimension(3) == 3, ov.Dimension(2, 5).max_length, str(ov.Dimension())) == (True, 5, "?")
    assert repr(ov.Shape([1, 2])) == "<Shape: [1,2]>" and tuple(ov.Shape([1, 2])) == (1, 2)
    assert str(ov.Layout("NCHW")) == "[N,C,H,W]" and ov.Layout("NCHW").get_index_by_name("C") == 1
    for wrong in (lambda: ov.Shape([-1]), lambda: hash(ov.PartialShape([1]))):
        with pytest.raises(TypeError):
            wrong()
    for dynamic in (ov.PartialShape([-1]).to_shape, ov.Dimension(2, 5).get_length):
        with pytest.raises(RuntimeError):
            dynamic()


@pytest.mark.parametrize(
    "path", sorted((SAMPLES / "mat_mul").glob("*.xml")) + sorted((SAMPLES / "split").glob("*.xml"))
)
def test_names_are_those_of_openvino(ov, openvino, path):
    a, b = (package.Core().read_model(path) for package in (openvino, ov))
    assert [port.names for port in a.inputs + a.outputs] == [port.names for port in b.inputs + b.outputs]
    assert repr(a.inputs) == repr(b.inputs)
