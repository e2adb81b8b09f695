"""A small encoder of texts in the form of BERT, with random weights, as `openvino_genai.TextEmbeddingPipeline` loads it."""

import os

import numpy as np
import openvino as ov
from decoder import HEADS, HIDDEN, INNER, LAYERS, VOCABULARY, Decoder, f32, i64, write_json, write_tokenizer
from openvino import opset13 as op

POSITIONS = 128


class Encoder(Decoder):
    """The graph: three embeddings, layers that norm what they have added, the last states."""

    def affine(self, x, outputs, inputs):
        return op.add(self.linear(x, outputs, inputs), f32(self.random.standard_normal((1, 1, outputs)) * 0.1))

    def norm(self, x):
        scale, shift = (f32(self.random.standard_normal((1, 1, HIDDEN)) * 0.1 + base) for base in (1, 0))
        return op.add(op.multiply(op.mvn(x, i64([-1]), True, 1e-12, "inside_sqrt"), scale), shift)

    def table(self, rows, at):
        return op.gather(f32(self.random.standard_normal((rows, HIDDEN))), at, i64(0))

    def model(self):
        names = ["input_ids", "attention_mask", "token_type_ids"]
        inputs = [op.parameter([-1, -1], np.int64, name) for name in names]
        for parameter, name in zip(inputs, names):
            parameter.output(0).get_tensor().set_names({name})
        ids, mask, kinds = inputs
        length = op.gather(op.shape_of(ids), i64(1), i64(0))
        positions = op.unsqueeze(op.range(i64(0), length, i64(1), "i64"), i64(0))
        x = op.add(self.table(VOCABULARY, ids), self.table(2, kinds))
        x = self.norm(op.add(x, self.table(POSITIONS, positions)))
        hidden = op.subtract(f32(1), op.convert(op.unsqueeze(mask, i64([1, 2])), "f32"))
        bias = op.multiply(hidden, f32(np.finfo(np.float32).min))
        for _ in range(LAYERS):
            q, k, v = (self.heads(self.affine(x, HIDDEN, HIDDEN)) for _ in range(3))
            o = op.scaled_dot_product_attention(q, k, v, bias)
            o = op.reshape(op.transpose(o, i64([0, 2, 1, 3])), i64([0, 0, HIDDEN]), True)
            x = self.norm(op.add(x, self.affine(o, HIDDEN, HIDDEN)))
            inner = op.gelu(self.affine(x, INNER, HIDDEN), "erf")
            x = self.norm(op.add(x, self.affine(inner, HIDDEN, INNER)))
        x.output(0).get_tensor().set_names({"last_hidden_state"})
        return ov.Model([op.result(x)], inputs, "encoder")


def write(folder):
    ov.save_model(Encoder().model(), os.path.join(folder, "openvino_model.xml"), compress_to_fp16=False)
    end = write_tokenizer(folder)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "vocab_size": VOCABULARY,
        "pad_token_id": end,
        "max_position_embeddings": POSITIONS,
    }
    write_json(folder, "config", config)
