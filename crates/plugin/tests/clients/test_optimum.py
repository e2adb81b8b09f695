"""optimum-intel's models of transformers, exported by it, on CPU and on the device. The weights are random."""

import numpy as np
import pytest
import torch
import transformers
from conftest import DEVICE, EXACT
from optimum.intel import (
    OVModelForCausalLM,
    OVModelForCTC,
    OVModelForFeatureExtraction,
    OVModelForImageClassification,
    OVModelForSeq2SeqLM,
    OVModelForSequenceClassification,
    OVModelForSpeechSeq2Seq,
    OVWeightQuantizationConfig,
)

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
IDS = torch.tensor([[5, 17, 3, 200, 41, 8, 77], [9, 9, 250, 13, 1, 2, 3]])

# Heads of queries that share keys, biases, positions by rotation, by table and by slope, norms of both kinds, windows,
# experts, sinks; masks of numbers and of booleans.
DECODERS = {
    "llama": lambda: transformers.LlamaConfig(vocab_size=300, num_key_value_heads=2, **SIZES),
    "qwen2": lambda: transformers.Qwen2Config(vocab_size=300, num_key_value_heads=2, **SIZES),
    "gpt2": lambda: transformers.GPT2Config(vocab_size=300, n_embd=64, n_layer=2, n_head=4, n_positions=128),
    "phi3": lambda: transformers.Phi3Config(
        vocab_size=300, num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2, **SIZES
    ),
    "opt": lambda: transformers.OPTConfig(
        vocab_size=300, hidden_size=64, ffn_dim=128, num_hidden_layers=2, num_attention_heads=4, word_embed_proj_dim=64
    ),
    "bloom": lambda: transformers.BloomConfig(vocab_size=300, hidden_size=64, n_layer=2, n_head=4),
    "falcon": lambda: transformers.FalconConfig(vocab_size=300, hidden_size=64, num_hidden_layers=2, num_attention_heads=4),
    "olmo2": lambda: transformers.Olmo2Config(vocab_size=300, num_key_value_heads=2, eos_token_id=2, **SIZES),
    "mixtral": lambda: transformers.MixtralConfig(
        vocab_size=300, num_key_value_heads=2, num_local_experts=4, sliding_window=6, **SIZES
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        vocab_size=300, num_key_value_heads=2, head_dim=16, num_local_experts=4, sliding_window=6, **SIZES
    ),
}


def folder_of(tmp_path_factory, name, model):
    folder = tmp_path_factory.mktemp(name)
    model.eval().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=DECODERS)
def decoder(request, tmp_path_factory):
    """The folder of an exported decoder with a state, and the model in PyTorch."""
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(DECODERS[request.param]())
    folder = folder_of(tmp_path_factory, request.param, model)
    exported = OVModelForCausalLM.from_pretrained(folder, export=True, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "ir")
    return folder / "ir", model


def load(kind, folder, device, **options):
    config = EXACT if device == "CPU" else {}
    return kind.from_pretrained(folder, device=device, ov_config=config, **options)


def both(kind, folder, use):
    """The results of `use` with the model on CPU, and on the device."""
    return use(load(kind, folder, "CPU")), use(load(kind, folder, DEVICE))


def test_logits(decoder):
    folder, model = decoder
    with torch.no_grad():
        expected = model(IDS).logits.numpy()
    found = load(OVModelForCausalLM, folder, DEVICE)(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"num_beams": 3, "num_return_sequences": 2}], ids=["greedy", "beams"])
def test_generate(decoder, options):
    def generate(model):
        options_of_all = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False, "pad_token_id": 0}
        return model.generate(IDS, attention_mask=torch.ones_like(IDS), **options_of_all, **options).tolist()

    expected, found = both(OVModelForCausalLM, decoder[0], generate)
    assert found == expected


def test_texts_of_unequal_length(decoder):
    """The shorter one is padded on its left, as generate wants it: rows of the padding attend to nothing."""
    mask = torch.ones_like(IDS)
    mask[1, :4] = 0

    def generate(model):
        return model.generate(IDS, attention_mask=mask, max_new_tokens=9, do_sample=False, pad_token_id=0).tolist()

    expected, found = both(OVModelForCausalLM, decoder[0], generate)
    assert found == expected


def test_compressed_decoder(tmp_path_factory):
    """optimum-intel has NNCF make 4 bits of the weights while it exports."""
    model = transformers.AutoModelForCausalLM.from_config(DECODERS["qwen2"]())
    folder = folder_of(tmp_path_factory, "compressed", model)
    config = OVWeightQuantizationConfig(bits=4, sym=False, group_size=32, ratio=1.0)
    exported = OVModelForCausalLM.from_pretrained(folder, export=True, compile=False, quantization_config=config)
    exported.save_pretrained(folder / "ir")

    def logits(model):
        return model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits.numpy()

    expected, found = both(OVModelForCausalLM, folder / "ir", logits)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_model_without_state(tmp_path_factory):
    """The cache comes and goes through inputs and outputs."""
    model = transformers.AutoModelForCausalLM.from_config(DECODERS["llama"]())
    folder = folder_of(tmp_path_factory, "without_state", model)
    exported = OVModelForCausalLM.from_pretrained(folder, export=True, stateful=False, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "ir")

    def generate(model):
        return model.generate(IDS, max_new_tokens=9, do_sample=False, pad_token_id=0).tolist()

    expected, found = both(OVModelForCausalLM, folder / "ir", generate)
    assert found == expected


@pytest.mark.parametrize("kind", ["BertModel", "RobertaModel", "DistilBertModel", "MPNetModel"])
def test_features(tmp_path_factory, kind):
    config = getattr(transformers, kind).config_class(vocab_size=300, **SIZES)
    model = getattr(transformers, kind)(config)
    folder = folder_of(tmp_path_factory, kind, model)
    OVModelForFeatureExtraction.from_pretrained(folder, export=True, compile=False).save_pretrained(folder / "ir")
    mask = torch.ones_like(IDS)
    mask[1, 5:] = 0
    with torch.no_grad():
        expected = model(input_ids=IDS, attention_mask=mask).last_hidden_state.numpy()
    device = load(OVModelForFeatureExtraction, folder / "ir", DEVICE)
    for _ in range(2):
        found = device(input_ids=IDS, attention_mask=mask).last_hidden_state.numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    one = device(input_ids=IDS[:1, :4], attention_mask=mask[:1, :4]).last_hidden_state
    assert one.shape == (1, 4, 64)


def test_classes_in_a_static_shape(tmp_path_factory):
    model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=300, num_labels=5, **SIZES))
    folder = folder_of(tmp_path_factory, "classes", model)
    device = load(OVModelForSequenceClassification, folder, DEVICE, export=True)
    device.reshape(2, 7)
    device.compile()
    with torch.no_grad():
        expected = model(input_ids=IDS).logits.numpy()
    found = device(input_ids=IDS, attention_mask=torch.ones_like(IDS), token_type_ids=torch.zeros_like(IDS)).logits.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


PICTURES = {
    "ViTForImageClassification": {"image_size": 32, "patch_size": 8, **SIZES},
    "ResNetForImageClassification": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [2, 1], "layer_type": "basic"},
    "ConvNextForImageClassification": {"image_size": 32, "hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "SwinForImageClassification": {"image_size": 32, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    "MobileNetV2ForImageClassification": {"image_size": 32, "depth_multiplier": 0.35},
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures(tmp_path_factory, kind):
    kind_in_torch = getattr(transformers, kind)
    torch.manual_seed(2)
    model = kind_in_torch(kind_in_torch.config_class(num_labels=7, **PICTURES[kind]))
    folder = folder_of(tmp_path_factory, kind, model)
    pictures = torch.from_numpy(np.random.default_rng(2).standard_normal((2, 3, 32, 32)).astype(np.float32))
    with torch.no_grad():
        expected = model(pictures).logits.numpy()
    found = load(OVModelForImageClassification, folder, DEVICE, export=True)(pixel_values=pictures).logits.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_sounds(tmp_path_factory):
    config = transformers.Wav2Vec2Config(
        vocab_size=32, conv_dim=[32, 32, 32], conv_stride=[5, 4, 4], conv_kernel=[10, 3, 3], num_feat_extract_layers=3,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, **SIZES,
    )  # fmt: skip
    torch.manual_seed(2)
    model = transformers.Wav2Vec2ForCTC(config)
    folder = folder_of(tmp_path_factory, "sounds", model)
    device = load(OVModelForCTC, folder, DEVICE, export=True)
    for length in (4000, 2500):
        sound = torch.from_numpy(np.random.default_rng(length).standard_normal((1, length)).astype(np.float32))
        with torch.no_grad():
            expected = model(sound).logits.numpy()
        np.testing.assert_allclose(device(input_values=sound).logits.numpy(), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}], ids=["greedy", "beams"])
def test_translation(tmp_path_factory, options):
    """An encoder, and a decoder that attends to it."""
    config = transformers.T5Config(
        vocab_size=300, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, decoder_start_token_id=0, tie_word_embeddings=False
    )
    torch.manual_seed(5)
    folder = folder_of(tmp_path_factory, "t5", transformers.T5ForConditionalGeneration(config))
    OVModelForSeq2SeqLM.from_pretrained(folder, export=True, compile=False).save_pretrained(folder / "ir")

    def generate(model):
        sizes = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}
        return model.generate(IDS, attention_mask=torch.ones_like(IDS), **sizes, **options).tolist()

    expected, found = both(OVModelForSeq2SeqLM, folder / "ir", generate)
    assert found == expected


def test_speech(tmp_path_factory):
    config = transformers.WhisperConfig(
        vocab_size=300, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=1500, max_target_positions=64, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3, suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    torch.manual_seed(7)
    folder = folder_of(tmp_path_factory, "speech", transformers.WhisperForConditionalGeneration(config))
    OVModelForSpeechSeq2Seq.from_pretrained(folder, export=True, compile=False).save_pretrained(folder / "ir")
    sound = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 80, 3000)).astype(np.float32))

    def generate(model):
        return model.generate(sound, max_new_tokens=12, min_new_tokens=12, do_sample=False).tolist()

    expected, found = both(OVModelForSpeechSeq2Seq, folder / "ir", generate)
    assert found == expected
