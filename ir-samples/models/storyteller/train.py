"""Trains the sample models `storyteller_u4` and `storyteller_u8`, and writes them as IR with their vocabulary.

Data: "Botchan (Master Darling)" by Kin-nosuke Natsume, translated by Yasotaro Morri, revised by J. R. Kennedy, Tokyo
1919; in the public domain in the United States. The text is that of Project Gutenberg's eBook 8868 without its header
and licence, as the source distribution of `sentencepiece` 0.1.97 on PyPI has it (`test/botchan.txt`).

    pip install numpy torch openvino
    python train.py

That takes some twenty minutes on one thread. The models write letter by letter in the manner of that book.
Both have the same network, a decoder as large ones are (RMSNorm, rotary positions, queries in groups that share keys and
values, SwiGLU), and keep keys and values in variables, in the form that optimum-intel exports: `input_ids`,
`attention_mask`, `position_ids` and `beam_idx` become `logits`. Their weights are compressed as NNCF does it: to 8 bits
for each row, or to 4 bits for each group of 32. `*.expected.txt` is what OpenVINO has them write.
"""
import hashlib
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import openvino as ov
import torch
from openvino import opset13 as op
from openvino.op.util import Variable, VariableInfo
from torch.nn import functional

SOURCE, MEMBER = "sentencepiece==0.1.97", "sentencepiece-0.1.97/test/botchan.txt"
SHA256 = "464bd5300c24fce16fcc4555d4231a57632caae4d0090ad6aa92854a3b227ba7"
WIDTH, LAYERS, HEADS, SHARED, INNER, CONTEXT = 128, 4, 4, 2, 352, 256
HEAD = WIDTH // HEADS
STEPS, BATCH, RATE, DROPOUT = 1200, 16, 4e-3, 0.1
PROMPT, WRITTEN = "I was ", 200
HERE = os.path.dirname(os.path.abspath(__file__))


def read_text():
    """The story, from its first chapter to its end."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, SOURCE]
        subprocess.run(pip, check=True)
        with tarfile.open(os.path.join(folder, os.listdir(folder)[0])) as archive:
            data = archive.extractfile(MEMBER).read()
    if hashlib.sha256(data).hexdigest() != SHA256:
        sys.exit(f"{MEMBER} is not the text that it was")
    text = data.decode("utf-8-sig").replace("\r", "")
    return text[text.index("CHAPTER I\n") : text.index("End of Project Gutenberg's Botchan")]


def shapes(vocabulary):
    """The matrices, each row the weights of one output."""
    layer = {"q": (WIDTH, WIDTH), "k": (SHARED * HEAD, WIDTH), "v": (SHARED * HEAD, WIDTH), "o": (WIDTH, WIDTH)}
    layer |= {"gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}
    every = {f"{n}.{name}": shape for n in range(LAYERS) for name, shape in layer.items()}
    return every | {"embedding": (vocabulary, WIDTH), "head": (vocabulary, WIDTH)}


def logits(p, tokens, dropout):
    """The network in PyTorch: tokens [b, n] -> [b, n, vocabulary]."""
    batch, length = tokens.shape
    angles = torch.outer(torch.arange(length), 1e4 ** (-torch.arange(0, HEAD, 2) / HEAD)).repeat(1, 2)
    cos, sin = angles.cos(), angles.sin()

    def norm(x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * p[name]

    def heads(x, name, count, turned=True):
        x = (x @ p[name].T).view(batch, length, count, HEAD).transpose(1, 2)
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin if turned else x

    def drop(x):
        return functional.dropout(x, dropout, dropout > 0)

    x = drop(p["embedding"][tokens])
    for n in range(LAYERS):
        y = norm(x, f"{n}.norm")
        q, k = heads(y, f"{n}.q", HEADS), heads(y, f"{n}.k", SHARED).repeat_interleave(HEADS // SHARED, 1)
        v = heads(y, f"{n}.v", SHARED, turned=False).repeat_interleave(HEADS // SHARED, 1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + drop(y.transpose(1, 2).reshape(batch, length, WIDTH) @ p[f"{n}.o"].T)
        y = norm(x, f"{n}.second_norm")
        y = functional.silu(y @ p[f"{n}.gate"].T) * (y @ p[f"{n}.up"].T)
        x = x + drop(y @ p[f"{n}.down"].T)
    return norm(x, "norm") @ p["head"].T


def train(tokens, vocabulary):
    """Adam on cross-entropy; -> the matrices and the factors of the norms, by name."""
    torch.manual_seed(7)
    torch.set_num_threads(1)
    p = {name: torch.randn(shape) * 0.7 / math.sqrt(shape[1]) for name, shape in shapes(vocabulary).items()}
    names = ["norm"] + [f"{n}.{name}" for n in range(LAYERS) for name in ("norm", "second_norm")]
    p |= {name: torch.ones(WIDTH) for name in names}
    weights = [x.requires_grad_() for x in p.values()]
    groups = [{"params": [x for x in weights if x.ndim == n], "weight_decay": decay} for n, decay in ((2, 0.1), (1, 0))]
    adam = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.99))
    tokens = torch.tensor(tokens)
    learnt = len(tokens) * 19 // 20
    window = torch.arange(CONTEXT + 1)

    def loss(starts, dropout):
        seen = tokens[starts[:, None] + window]
        return functional.cross_entropy(logits(p, seen[:, :-1], dropout).flatten(0, 1), seen[:, 1:].flatten())

    for step in range(STEPS):
        rate = RATE * min(1, step / 50) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / STEPS)))
        for group in adam.param_groups:
            group["lr"] = rate
        value = loss(torch.randint(learnt - CONTEXT, (BATCH,)), DROPOUT)
        adam.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        adam.step()
        if step % 50 == 49:
            with torch.no_grad():
                held_out = loss(torch.arange(learnt, len(tokens) - CONTEXT - 1, 512), 0.0)
            print(f"step {step + 1}: loss {value:.3f}, {held_out:.3f} on text it was not trained on", flush=True)
    return {name: x.detach().numpy() for name, x in p.items()}


def packed(values):
    """A constant of type u4, two elements a byte."""
    flat = values.reshape(-1)
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    tensor = ov.Tensor(ov.Type.u4, ov.Shape(list(values.shape)))
    tensor.data[:] = (flat[0::2] | flat[1::2] << 4).view(tensor.data.dtype).reshape(tensor.data.shape)
    return ov.op.Constant(tensor, shared_memory=False)


def integers(values):
    return op.constant(np.array(values, np.int64))


def floats(values):
    return op.constant(np.array(values, np.float32))


def compressed(w, bits):
    """A matrix of rows: of 8 bits with a zero point and scale for each, or of 4 bits with these for groups of 32."""
    rows, columns = w.shape
    grouped = w.reshape((rows, columns) if bits == 8 else (rows, columns // 32, 32))
    most = 2**bits - 1
    low = np.minimum(grouped.min(-1, keepdims=True), 0)
    scale = ((np.maximum(grouped.max(-1, keepdims=True), 0) - low) / most).astype(np.float16)
    zero = np.round(-low / scale.astype(np.float32))
    values = np.clip(np.round(grouped / scale.astype(np.float32)) + zero, 0, most).astype(np.uint8)
    constant = op.constant if bits == 8 else packed
    x = op.subtract(op.convert(constant(values), "f16"), op.convert(constant(zero.astype(np.uint8)), "f16"))
    x = op.multiply(x, op.constant(scale))
    if bits == 4:
        x = op.reshape(x, integers([rows, columns]), False)
    return op.convert(x, "f32")


def build(p, bits):
    """The network as IR, for texts of any length after those that it has seen."""
    ids, mask, positions, beams = inputs = [
        op.parameter([-1, -1], np.int64, name="input_ids"),
        op.parameter([-1, -1], np.int64, name="attention_mask"),
        op.parameter([-1, -1], np.int64, name="position_ids"),
        op.parameter([-1], np.int32, name="beam_idx"),
    ]
    for node in inputs:
        node.output(0).set_names({node.get_friendly_name()})
    # The embedding and the head keep 8 bits, as they do in large models.
    x = op.gather(compressed(p["embedding"], 8), ids, op.constant(np.int32(0)))
    turns = floats(1e4 ** (-np.arange(0, HEAD, 2) / HEAD).reshape(1, 1, -1))
    angles = op.multiply(op.unsqueeze(op.convert(positions, "f32"), integers(2)), turns)
    angles = op.unsqueeze(op.concat([angles, angles], -1), integers(1))
    cos, sin = op.cos(angles), op.sin(angles)
    total = op.gather(op.shape_of(mask), integers(1), integers(0))
    columns = op.unsqueeze(op.range(integers(0), total, integers(1), "i64"), integers([0, 1]))
    earlier = op.less_equal(columns, op.unsqueeze(positions, integers(2)))
    seen = op.logical_and(earlier, op.convert(op.unsqueeze(mask, integers(1)), "boolean"))
    bias = op.unsqueeze(op.select(seen, floats(0), floats(-3.4e38)), integers(1))
    batch = op.gather(op.shape_of(ids), integers([0]), integers(0))
    none = op.broadcast(floats(0), op.concat([batch, integers([SHARED, 0, HEAD])], 0))
    sinks, variables = [], []

    def linear(v, name):
        return op.matmul(v, compressed(p[name], 8 if name == "head" else bits), False, True)

    def norm(v, name):
        mean = op.reduce_mean(op.power(v, floats(2)), integers([-1]), True)
        v = op.multiply(v, op.divide(floats(1), op.sqrt(op.add(mean, floats(1e-6)))))
        return op.multiply(v, floats(p[name].reshape(1, 1, -1)))

    def heads(v, name, count):
        split = op.reshape(linear(v, name), integers([0, 0, count, HEAD]), True)
        return op.transpose(split, integers([0, 2, 1, 3]))

    def turned(v):
        low, high = op.split(v, integers(3), 2).outputs()
        return op.add(op.multiply(v, cos), op.multiply(op.concat([op.negative(high), low], -1), sin))

    def kept(new, name):
        """All that was seen so far, for all queries of a group."""
        info = VariableInfo()
        info.data_shape, info.data_type, info.variable_id = ov.PartialShape([-1, SHARED, -1, HEAD]), ov.Type.f32, name
        variables.append(Variable(info))
        past = op.gather(op.read_value(none, variables[-1]), beams, op.constant(np.int32(0)))
        every = op.concat([past, new], 2)
        sinks.append(op.assign(every, variables[-1]))
        size = op.shape_of(every)
        size = [op.gather(size, integers(at), integers(0)) for at in ([0, 1], [2, 3])]
        size = op.concat([size[0], integers([HEADS // SHARED]), size[1]], 0)
        repeated = op.broadcast(op.unsqueeze(every, integers(2)), size, "BIDIRECTIONAL")
        return op.reshape(repeated, integers([0, HEADS, -1, HEAD]), True)

    for n in range(LAYERS):
        y = norm(x, f"{n}.norm")
        q, k, v = turned(heads(y, f"{n}.q", HEADS)), turned(heads(y, f"{n}.k", SHARED)), heads(y, f"{n}.v", SHARED)
        k = kept(k, f"past_key_values.{n}.keypresent.{n}.key")
        v = kept(v, f"past_key_values.{n}.valuepresent.{n}.value")
        y = op.transpose(op.scaled_dot_product_attention(q, k, v, bias), integers([0, 2, 1, 3]))
        x = op.add(x, linear(op.reshape(y, integers([0, 0, WIDTH]), True), f"{n}.o"))
        y = norm(x, f"{n}.second_norm")
        y = op.multiply(op.swish(linear(y, f"{n}.gate")), linear(y, f"{n}.up"))
        x = op.add(x, linear(y, f"{n}.down"))
    found = linear(norm(x, "norm"), "head")
    found.set_friendly_name("logits")
    found.output(0).set_names({"logits"})
    return ov.Model([op.result(found)], sinks, inputs, variables, "storyteller")


def write(model, vocabulary):
    """What OpenVINO has the model write, each time the likeliest letter, and how sure the least sure choice was."""
    precise = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    request = ov.Core().compile_model(model, "CPU", precise | {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    text, seen, least = PROMPT, 0, math.inf
    tokens = [vocabulary.index(letter) for letter in PROMPT]
    for _ in range(WRITTEN):
        new = len(tokens)
        found = request.infer(
            {
                "input_ids": np.array([tokens]),
                "attention_mask": np.ones((1, seen + new), np.int64),
                "position_ids": np.arange(seen, seen + new)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
        )["logits"][0, -1]
        seen += new
        tokens = [int(found.argmax())]
        second, first = np.sort(found)[-2:]
        least = min(least, first - second)
        text += vocabulary[tokens[0]]
    return text, least


def main():
    text = read_text()
    vocabulary = sorted(set(text))
    trained = train([vocabulary.index(letter) for letter in text], len(vocabulary))
    for bits in (4, 8):
        path = os.path.join(HERE, f"storyteller_u{bits}")
        model = build(trained, bits)
        ov.save_model(model, f"{path}.xml", compress_to_fp16=False)
        with open(f"{path}.vocab.json", "w", encoding="utf-8") as file:
            json.dump(vocabulary, file, ensure_ascii=False)
            file.write("\n")
        written, least = write(model, vocabulary)
        with open(f"{path}.expected.txt", "w", encoding="utf-8") as file:
            file.write(written + "\n")
        print(f"{written}\n({bits} bits; the least sure letter was {least:.4f} before the next)\n")


if __name__ == "__main__":
    main()
