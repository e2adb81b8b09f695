"""openvino-genai's WhisperPipeline with a small model of random weights, exported by optimum-intel."""

import glob
import json
import os
import sysconfig

import numpy as np
import openvino as ov
import pytest
import torch
import transformers
from conftest import DEVICE, EXACT

genai = pytest.importorskip("openvino_genai")

LANGUAGES = ["<|en|>", "<|de|>"]
SPECIAL = [
    "<|endoftext|>", "<|startoftranscript|>", *LANGUAGES, "<|translate|>", "<|transcribe|>", "<|startoflm|>",
    "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>", *(f"<|{step / 50:.2f}|>" for step in range(1501)),
]  # fmt: skip
WORDS = 400
"""Tokens before the special ones, as in Whisper's own vocabulary."""


def token(text):
    return WORDS + SPECIAL.index(text)


def write_tokenizer(folder):
    from openvino_tokenizers import convert_tokenizer
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=WORDS, initial_alphabet=letters, show_progress=False)
    tokenizer.train(sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:40], trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[0], pad_token=SPECIAL[0])
    for model, name in zip(convert_tokenizer(fast, with_detokenizer=True), ("tokenizer", "detokenizer"), strict=True):
        ov.save_model(model, folder / f"openvino_{name}.xml")
    fast.save_pretrained(folder)
    assert fast.convert_tokens_to_ids(SPECIAL[-1]) == token(SPECIAL[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from optimum.intel import OVModelForSpeechSeq2Seq

    torch.manual_seed(7)
    ends = {"pad_token_id": token("<|endoftext|>"), "bos_token_id": token("<|endoftext|>")}
    ends |= {"eos_token_id": token("<|endoftext|>"), "decoder_start_token_id": token("<|startoftranscript|>")}
    config = transformers.WhisperConfig(
        vocab_size=WORDS + len(SPECIAL), d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_target_positions=64, init_std=0.4,
        suppress_tokens=[], begin_suppress_tokens=[], **ends,
    )  # fmt: skip
    plain = tmp_path_factory.mktemp("plain")
    transformers.WhisperForConditionalGeneration(config).eval().save_pretrained(plain)
    folder = tmp_path_factory.mktemp("whisper")
    OVModelForSpeechSeq2Seq.from_pretrained(plain, export=True, compile=False).save_pretrained(folder)
    transformers.WhisperFeatureExtractor().save_pretrained(folder)
    write_tokenizer(folder)
    generation = ends | {
        "begin_suppress_tokens": [], "suppress_tokens": [], "is_multilingual": True, "max_initial_timestamp_index": 50,
        "no_timestamps_token_id": token("<|notimestamps|>"), "prev_sot_token_id": token("<|startofprev|>"),
        "lang_to_id": {text: token(text) for text in LANGUAGES}, "max_length": 60,
        "task_to_id": {text: token(f"<|{text}|>") for text in ("transcribe", "translate")}, "return_timestamps": False,
    }  # fmt: skip
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


@pytest.fixture(scope="module")
def pipelines(folder):
    return genai.WhisperPipeline(folder, "CPU", **EXACT), genai.WhisperPipeline(folder, DEVICE)


def sound(seconds):
    time = np.arange(int(16000 * seconds)) / 16000
    return (np.sin(time * 2000 * (1 + time)) / 4).astype(np.float32).tolist()


@pytest.mark.parametrize("seconds", [1.5, 12])
@pytest.mark.parametrize(
    "options",
    [{"language": "<|de|>", "task": "transcribe"}, {"task": "translate"}, {"language": "<|en|>", "return_timestamps": True}],
    ids=["transcribe", "detect and translate", "timestamps"],
)
def test_words(pipelines, seconds, options):
    def words(pipeline):
        result = pipeline.generate(sound(seconds), max_new_tokens=30, **options)
        return result.texts, [(chunk.start_ts, chunk.end_ts, chunk.text) for chunk in result.chunks or []]

    expected, found = map(words, pipelines)
    assert found == expected
    assert expected[0] != [""]


def test_beams(pipelines):
    expected, found = (one.generate(sound(2), max_new_tokens=12, num_beams=3, language="<|en|>").texts for one in pipelines)
    assert found == expected
