"""openvino-genai's pipeline of text embeddings on the device, compared with CPU: the pipeline adds to the model what pools
and norms the states, and asks for tensors of any length."""

import encoder
import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE

genai = pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")

if DEVICE not in ov.Core().available_devices:
    pytest.skip("the device is not installed beside OpenVINO", allow_module_level=True)

TEXTS = ["import os", "def main(arguments):\n    return len(arguments) + 1\n", "x", "class A:\n    pass\n\n" * 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    encoder.write(folder)
    return str(folder)


def pipelines(folder, pooling, **options):
    """On CPU at its most precise, and on the device."""
    options["pooling_type"] = getattr(genai.TextEmbeddingPipeline.PoolingType, pooling)
    of = genai.TextEmbeddingPipeline
    return of(folder, "CPU", INFERENCE_PRECISION_HINT="f32", **options), of(folder, DEVICE, **options)


def compare(pair, use):
    expected, found = (np.array(use(pipeline)) for pipeline in pair)
    assert expected.shape[-1] == encoder.HIDDEN and np.ptp(expected) > 0.1
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["CLS", "MEAN", "LAST_TOKEN"])
def test_texts_of_unequal_length(folder, pooling, normalize):
    pair = pipelines(folder, pooling, normalize=normalize)
    for texts in (TEXTS, TEXTS[:2], TEXTS[::-1], TEXTS[3:], TEXTS):
        found = compare(pair, lambda pipeline: pipeline.embed_documents(texts))
        assert found.shape == (len(texts), encoder.HIDDEN)
        if normalize:
            np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    for text in TEXTS:
        compare(pair, lambda pipeline: pipeline.embed_query(text))


@pytest.mark.parametrize("pooling", ["CLS", "MEAN", "LAST_TOKEN"])
def test_a_text_is_the_same_in_any_company(folder, pooling):
    """What is padded for the sake of a longer text does not count."""
    _, device = pipelines(folder, pooling)
    together = device.embed_documents(TEXTS)
    alone = [device.embed_documents([text])[0] for text in TEXTS]
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", ["MEAN", "LAST_TOKEN"])
def test_padding_on_the_left(folder, pooling):
    pair = pipelines(folder, pooling, padding_side="left")
    compare(pair, lambda pipeline: pipeline.embed_documents(TEXTS))


def test_a_length_at_most(folder):
    """The model gets dims with bounds; longer texts are cut."""
    pair = pipelines(folder, "MEAN", max_length=8)
    compare(pair, lambda pipeline: pipeline.embed_documents(TEXTS))
    compare(pair, lambda pipeline: pipeline.embed_query(TEXTS[3]))


def test_fixed_shapes(folder):
    pair = pipelines(folder, "MEAN", batch_size=4, max_length=24, pad_to_max_length=True, normalize=True)
    for texts in (TEXTS, TEXTS[::-1]):
        compare(pair, lambda pipeline: pipeline.embed_documents(texts))


def test_instructions(folder):
    pair = pipelines(folder, "MEAN", query_instruction="find: ", embed_instruction="text: ")
    query = compare(pair, lambda pipeline: pipeline.embed_query(TEXTS[0]))
    document = compare(pair, lambda pipeline: pipeline.embed_documents(TEXTS[:1]))
    assert np.abs(query - document[0]).max() > 0.01


def test_without_waiting(folder):
    def started(pipeline):
        pipeline.start_embed_documents_async(TEXTS)
        return pipeline.wait_embed_documents()

    pair = pipelines(folder, "CLS")
    for _ in range(2):
        compare(pair, started)
