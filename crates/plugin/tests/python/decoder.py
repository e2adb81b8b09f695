"""A small language model with random weights, and a tokenizer for it, as `openvino_genai.LLMPipeline` loads them."""

import glob
import json
import os
import sysconfig

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo

VOCABULARY = 600
HIDDEN, HEADS, INNER, LAYERS = 64, 4, 128, 2
SIZE = HIDDEN // HEADS


def i64(value):
    return op.constant(np.array(value, np.int64))


def f32(value):
    return op.constant(np.array(value, np.float32))


class Decoder:
    """The graph: inputs, layers with a cache of keys and values each, logits."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.sinks, self.variables = [], []

    def linear(self, x, outputs, inputs):
        weights = self.random.standard_normal((outputs, inputs)) / np.sqrt(inputs)
        return op.matmul(x, f32(weights), False, True)

    def norm(self, x):
        mean = op.reduce_mean(op.power(x, f32(2)), i64([-1]), True)
        scale = f32(self.random.standard_normal((1, 1, HIDDEN)) * 0.1 + 1)
        return op.multiply(op.divide(x, op.sqrt(op.add(mean, f32(1e-6)))), scale)

    def heads(self, x):
        return op.transpose(op.reshape(x, i64([0, 0, HEADS, SIZE]), True), i64([0, 2, 1, 3]))

    def cached(self, new, name, batch, beam):
        info = VariableInfo()
        info.data_shape, info.data_type = ov.PartialShape([-1, HEADS, -1, SIZE]), ov.Type.f32
        info.variable_id = name
        variable = Variable(info)
        empty = op.broadcast(f32(0), op.concat([batch, i64([HEADS, 0, SIZE])], 0))
        past = op.gather(op.read_value(empty, variable), beam, op.constant(np.int32(0)))
        both = op.concat([past, new], 2)
        self.variables.append(variable)
        self.sinks.append(op.assign(both, variable))
        return both

    def rotated(self, x, cos, sin):
        half = i64([SIZE // 2])
        low = op.slice(x, i64([0]), half, i64([1]), i64([3]))
        high = op.slice(x, half, i64([SIZE]), i64([1]), i64([3]))
        turned = op.concat([op.multiply(high, f32(-1)), low], -1)
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))

    def model(self):
        named = [("input_ids", [-1, -1], np.int64), ("attention_mask", [-1, -1], np.int64)]
        named += [("position_ids", [-1, -1], np.int64), ("beam_idx", [-1], np.int32)]
        inputs = [op.parameter(shape, kind, name) for name, shape, kind in named]
        for parameter, (name, _, _) in zip(inputs, named):
            parameter.output(0).get_tensor().set_names({name})
        ids, mask, positions, beam = inputs
        x = op.gather(f32(self.random.standard_normal((VOCABULARY, HIDDEN))), ids, i64(0))
        rates = f32((1 / 10000 ** (np.arange(0, SIZE, 2) / SIZE)).reshape(1, 1, -1))
        angle = op.multiply(op.convert(op.unsqueeze(positions, i64(2)), "f32"), rates)
        angle = op.unsqueeze(op.concat([angle, angle], -1), i64(1))
        cos, sin = op.cos(angle), op.sin(angle)
        batch = op.gather(op.shape_of(ids), i64([0]), i64(0))
        total = op.gather(op.shape_of(mask), i64(1), i64(0))
        columns = op.unsqueeze(op.range(i64(0), total, i64(1), "i64"), i64([0, 1]))
        before = op.less_equal(columns, op.unsqueeze(positions, i64(2)))
        seen = op.logical_and(before, op.convert(op.unsqueeze(mask, i64(1)), "boolean"))
        bias = op.unsqueeze(op.select(seen, f32(0), f32(-3.4e38)), i64(1))
        for layer in range(LAYERS):
            h = self.norm(x)
            q, k, v = (self.heads(self.linear(h, HIDDEN, HIDDEN)) for _ in range(3))
            q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
            k = self.cached(k, f"past_key_values.{layer}.keypresent.{layer}.key", batch, beam)
            v = self.cached(v, f"past_key_values.{layer}.valuepresent.{layer}.value", batch, beam)
            o = op.scaled_dot_product_attention(q, k, v, bias)
            o = op.reshape(op.transpose(o, i64([0, 2, 1, 3])), i64([0, 0, HIDDEN]), True)
            x = op.add(x, self.linear(o, HIDDEN, HIDDEN))
            h = self.norm(x)
            gate = op.swish(self.linear(h, INNER, HIDDEN))
            x = op.add(x, self.linear(op.multiply(gate, self.linear(h, INNER, HIDDEN)), HIDDEN, INNER))
        logits = self.linear(self.norm(x), VOCABULARY, HIDDEN)
        logits.output(0).get_tensor().set_names({"logits"})
        return ov.Model([op.result(logits)], self.sinks, inputs, self.variables, "decoder")


CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tokenizer(folder):
    """Of byte pairs, trained on Python's own sources."""
    from openvino_tokenizers import convert_tokenizer
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=special, initial_alphabet=letters, show_progress=False
    )
    tokenizer.train(sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:40], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0], pad_token=special[0])
    fast.chat_template = CHAT
    models = convert_tokenizer(fast, with_detokenizer=True, skip_special_tokens=True)
    for model, name in zip(models, ("tokenizer", "detokenizer")):
        ov.save_model(model, os.path.join(folder, f"openvino_{name}.xml"))
    fast.save_pretrained(folder)
    return fast.eos_token_id


def write_json(folder, name, value):
    with open(os.path.join(folder, f"{name}.json"), "w") as file:
        json.dump(value, file)


def write(folder):
    ov.save_model(Decoder().model(), os.path.join(folder, "openvino_model.xml"), compress_to_fp16=False)
    end = write_tokenizer(folder)
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "vocab_size": VOCABULARY,
        "eos_token_id": end,
        "max_position_embeddings": 2048,
    }
    write_json(folder, "config", config)
    write_json(folder, "generation_config", {"eos_token_id": end, "pad_token_id": end, "do_sample": False})
