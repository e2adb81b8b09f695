"""openvino-genai's pipelines, which have a core of their own: the device must be in OpenVINO's list of plugins."""

import decoder
import openvino as ov
import pytest
from conftest import DEVICE

genai = pytest.importorskip("openvino_genai")
pytest.importorskip("openvino_tokenizers")

if DEVICE not in ov.Core().available_devices:
    pytest.skip("the device is not installed beside OpenVINO", allow_module_level=True)

EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "ATTENTION_BACKEND": "SDPA"}
PROMPTS = ["def main(", "import os, sys\nclass A", "x"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder")
    decoder.write(folder)
    return str(folder)


@pytest.fixture(scope="module")
def cpu(folder):
    return genai.LLMPipeline(folder, "CPU", **EXACT)


@pytest.fixture(scope="module")
def device(folder):
    """As a user makes it: the pipeline offers its paged attention first, and goes on without it."""
    return genai.LLMPipeline(folder, DEVICE)


def ids(pipeline, prompt, **options):
    tokens = pipeline.get_tokenizer().encode(prompt)
    result = pipeline.generate(tokens, max_new_tokens=24, ignore_eos=True, **options)
    return [list(map(int, one)) for one in result.tokens]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy(cpu, device, prompt):
    expected = ids(cpu, prompt, do_sample=False)
    for _ in range(2):
        assert ids(device, prompt, do_sample=False) == expected


def test_batch(cpu, device):
    assert ids(device, PROMPTS, do_sample=False) == ids(cpu, PROMPTS, do_sample=False)


def test_beams(cpu, device):
    options = {"num_beams": 4, "num_return_sequences": 3, "do_sample": False}
    assert ids(device, PROMPTS[0], **options) == ids(cpu, PROMPTS[0], **options)


def test_sampling(device):
    options = {"do_sample": True, "temperature": 0.8, "top_k": 20, "rng_seed": 7}
    assert len(ids(device, PROMPTS[0], **options)[0]) == 24


def test_streaming(cpu, device):
    def stream(pipeline):
        parts = []
        pipeline.generate(PROMPTS[1], max_new_tokens=24, do_sample=False, streamer=lambda part: parts.append(part))
        return "".join(parts)

    assert stream(device) == stream(cpu) != ""


def test_chat(cpu, device):
    """The second answer is given to a history that the pipeline has cut."""

    def chat(pipeline):
        pipeline.start_chat()
        answers = [pipeline.generate(prompt, max_new_tokens=16, do_sample=False) for prompt in PROMPTS]
        pipeline.finish_chat()
        return answers

    assert chat(device) == chat(cpu)


def test_what_needs_paged_attention_says_so(folder):
    with pytest.raises(RuntimeError, match="PagedAttentionExtension|element_type"):
        genai.LLMPipeline(folder, DEVICE, scheduler_config=genai.SchedulerConfig())
