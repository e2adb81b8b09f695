"""Models as NNCF compresses and quantises them."""

import nncf
import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, EXACT
from openvino import opset13 as op

RANDOM = np.random.default_rng(11)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def text_model(element=np.float32):
    """Two layers on embeddings, which the head shares: ids [?, ?] to logits [?, ?, 512]."""

    def stored(values):
        constant = op.constant(values.astype(element))
        return constant if element == np.float32 else op.convert(constant, "f32")

    ids = op.parameter([-1, -1], np.int64)
    ids.output(0).set_names({"ids"})
    table = stored(normal(512, 128) / 4)
    x = op.gather(table, ids, op.constant(np.int64(0)))
    for _ in range(2):
        wide = op.swish(op.matmul(x, stored(normal(256, 128) / 11), False, True))
        x = op.add(x, op.matmul(wide, stored(normal(128, 256) / 16), False, True))
    return ov.Model([op.result(op.matmul(x, table, False, True))], [ids], "text")


def image_model():
    """Convolutions, one of them in groups, a pool and a head."""
    x = op.parameter([1, 3, 24, 24], np.float32)
    x.output(0).set_names({"x"})

    def convolution(x, outputs, inputs):
        weights = op.constant(normal(outputs, inputs, 3, 3) / np.sqrt(np.float32(inputs * 9)))
        y = op.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])
        return op.relu(op.add(y, op.constant(normal(1, outputs, 1, 1) / 8)))

    first = convolution(x, 16, 3)
    weights = op.constant(normal(16, 1, 1, 3, 3) / 3)
    second = op.relu(op.group_convolution(first, weights, [2, 2], [1, 1], [1, 1], [1, 1]))
    third = op.add(convolution(second, 16, 16), second)
    pooled = op.reshape(op.reduce_mean(third, op.constant(np.array([2, 3])), False), op.constant(np.array([1, 16])), False)
    return ov.Model([op.result(op.matmul(pooled, op.constant(normal(10, 16)), False, True))], [x], "image")


def on(device, model, feeds, config=None):
    return list(ov.Core().compile_model(model, device, config or {})(feeds).values())[0]


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


MODES = nncf.CompressWeightsMode
WEIGHTS = [
    (MODES.INT8_SYM, {}),
    (MODES.INT8_ASYM, {}),
    (MODES.INT4_SYM, {"group_size": 32, "ratio": 1.0, "all_layers": True}),
    (MODES.INT4_SYM, {"group_size": -1, "ratio": 1.0}),
    (MODES.INT4_ASYM, {"group_size": 64, "ratio": 0.7}),
    (MODES.INT4_ASYM, {"group_size": -1, "ratio": 1.0, "all_layers": True}),
    (MODES.NF4, {"group_size": 32, "ratio": 1.0}),
    (MODES.FP8_E4M3, {"group_size": 32, "ratio": 1.0}),
    (MODES.FP4, {"group_size": 16, "ratio": 1.0}),
    (MODES.MXFP4, {"ratio": 1.0, "all_layers": True}),
    (MODES.MXFP8_E4M3, {"ratio": 1.0}),
]


@pytest.mark.parametrize("element", [np.float32, np.float16])
@pytest.mark.parametrize(("mode", "options"), WEIGHTS, ids=[f"{mode.value}-{len(options)}" for mode, options in WEIGHTS])
def test_compressed_weights(mode, options, element):
    model = nncf.compress_weights(text_model(element), mode=mode, **options)
    compiled = ov.Core().compile_model(model, DEVICE)
    for shape in [(1, 1), (1, 7), (3, 40)]:
        ids = RANDOM.integers(0, 512, shape)
        expected = on("CPU", model, {"ids": ids}, EXACT)
        close(compiled({"ids": ids})[0], expected, 2e-5)


# CPU without its sums of bytes: on a processor that has no instructions for them, these saturate at 16 bits.
IN_FLOATS = {**EXACT, "LP_TRANSFORMS_MODE": False}


@pytest.mark.parametrize("preset", [nncf.QuantizationPreset.PERFORMANCE, nncf.QuantizationPreset.MIXED])
def test_quantized_activations(preset):
    """Rounding may be a step of a byte apart."""
    data = [{"x": normal(1, 3, 24, 24)} for _ in range(20)]
    plain = image_model()
    model = nncf.quantize(plain, nncf.Dataset(data), preset=preset, subset_size=20)
    assert any(node.get_type_name() == "FakeQuantize" for node in model.get_ops())
    for feeds in data[:4]:
        found = on(DEVICE, model, feeds)
        close(found, on("CPU", model, feeds, IN_FLOATS), 0.02)
        close(found, on("CPU", plain, feeds, EXACT), 0.2)


def test_quantized_transformer():
    """The text model, its products on quantised activations."""
    data = [{"ids": RANDOM.integers(0, 512, (2, 16))} for _ in range(20)]
    model = nncf.quantize(text_model(), nncf.Dataset(data), model_type=nncf.ModelType.TRANSFORMER, subset_size=20)
    for feeds in data[:4]:
        close(on(DEVICE, model, feeds), on("CPU", model, feeds, IN_FLOATS), 0.02)


def test_saved_and_read_again(tmp_path):
    """save_model writes what is left in f32 as f16."""
    model = nncf.compress_weights(text_model(), mode=MODES.INT4_ASYM, group_size=32, ratio=1.0)
    ov.save_model(model, tmp_path / "model.xml")
    ids = RANDOM.integers(0, 512, (2, 9))
    found = on(DEVICE, str(tmp_path / "model.xml"), {"ids": ids})
    close(found, on("CPU", str(tmp_path / "model.xml"), {"ids": ids}, EXACT), 2e-5)
