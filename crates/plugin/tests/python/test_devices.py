"""Devices of OpenVINO that hand the work to others; and what cannot run here."""

import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, compare, dense, named
from openvino import opset13 as op

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7 - 0.4


DEVICES = [
    f"AUTO:{DEVICE}",
    f"MULTI:{DEVICE}",
    f"BATCH:{DEVICE}(2)",
    f"HETERO:{DEVICE},CPU",
    f"HETERO:CPU,{DEVICE}",
    f"AUTO:{DEVICE},CPU",
]


@pytest.fixture
def core(core):
    # As precise as this device is.
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return core


@pytest.mark.parametrize("device", DEVICES)
def test_devices_of_devices(core, device):
    compare(core, dense(), [X], device=device)


def test_batches_of_requests(core):
    compiled = core.compile_model(dense(1, 3), f"BATCH:{DEVICE}(4)", {"AUTO_BATCH_TIMEOUT": 100})
    queue, found = ov.AsyncInferQueue(compiled, 8), {}
    queue.set_callback(lambda request, number: found.update({number: request.get_output_tensor().data.copy()}))
    for number in range(16):
        queue.start_async([np.full((1, 3), number, np.float32)], number)
    queue.wait_all()
    one = core.compile_model(dense(1, 3), "CPU")
    for number in range(16):
        np.testing.assert_allclose(found[number], one([np.full((1, 3), number, np.float32)])[0], rtol=1e-5)


def test_all_is_supported(core):
    supported = core.query_model(dense(), DEVICE)
    assert len(supported) == len(dense().get_ops())
    assert set(supported.values()) == {DEVICE}


class Twice(ov.Op):
    """An operator of the program's own."""

    def __init__(self, inputs=None):
        super().__init__(self, inputs)

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, new_inputs):
        return Twice(new_inputs)

    def get_type_info(self):
        return ov.DiscreteTypeInfo("Twice", "extension")

    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        inputs[0].copy_to(outputs[0])
        outputs[0].data[:] *= 2
        return True

    def has_evaluate(self):
        return True


def with_unknown():
    x = named(op.parameter([2, 3], np.float32), "x")
    first, second = Twice([op.relu(x)]), Twice([op.tanh(x)])
    first.set_friendly_name("first")
    second.set_friendly_name("second")
    return ov.Model([op.result(op.add(first, second))], [x], "unknown")


def test_unknown_layers_are_named_all_at_once(core):
    with pytest.raises(RuntimeError) as error:
        core.compile_model(with_unknown(), DEVICE)
    assert "'first' (Twice, extension)" in str(error.value)
    assert "'second' (Twice, extension)" in str(error.value)
    supported = core.query_model(with_unknown(), DEVICE)
    assert not {"first", "second"} & set(supported) and "x" in supported


def test_hetero_splits(core):
    model = with_unknown()
    supported = core.query_model(model, f"HETERO:{DEVICE},CPU")
    assert supported["first"] == "CPU" and supported["x"] in (DEVICE, "CPU")
    compiled = core.compile_model(model, f"HETERO:{DEVICE},CPU")
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {DEVICE, "CPU"}
    np.testing.assert_allclose(compiled([X])[0], 2 * np.maximum(X, 0) + 2 * np.tanh(X), rtol=1e-5, atol=1e-6)
