"""Trains the sample model `digits` and writes it as IR, with a few images to run it on.

Data: the 1797 handwritten digits, 8x8 pixels of 17 grey levels, that scikit-learn ships
(`sklearn.datasets.load_digits`; from the UCI repository, "Optical Recognition of Handwritten
Digits", E. Alpaydin and C. Kaynak, CC BY 4.0).

    pip install numpy scikit-learn openvino
    python train.py

The model looks up a vector for every pixel and grey level (Gather), adds them up, and classifies the
sum with one more layer. It gives the digit's name, the probability (GatherElements at the digit found)
and all ten probabilities.
"""
import os

import numpy as np
import openvino as ov
from openvino import opset15 as op
from sklearn.datasets import load_digits

PIXELS, LEVELS, WIDTH, CLASSES = 64, 17, 24, 10
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
HERE = os.path.dirname(os.path.abspath(__file__))


def train(images, labels, epochs=60, rate=3e-3):
    """Adam on cross-entropy; -> table [PIXELS * LEVELS, WIDTH], bias, head [WIDTH, CLASSES], head bias."""
    rng = np.random.default_rng(7)
    weights = [
        rng.normal(0, 0.05, (PIXELS * LEVELS, WIDTH)),
        np.zeros(WIDTH),
        rng.normal(0, 0.3, (WIDTH, CLASSES)),
        np.zeros(CLASSES),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    tokens = images + np.arange(PIXELS) * LEVELS
    step = 0
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(len(images)), len(images) // 32):
            table, bias, head, head_bias = weights
            hidden = np.maximum(table[tokens[batch]].sum(1) + bias, 0)
            logits = hidden @ head + head_bias
            p = np.exp(logits - logits.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            p[np.arange(len(batch)), labels[batch]] -= 1
            p /= len(batch)
            back = (p @ head.T) * (hidden > 0)
            table_gradient = np.zeros_like(table)
            np.add.at(table_gradient, tokens[batch], back[:, None, :])
            gradients = [table_gradient + 1e-4 * table, back.sum(0), hidden.T @ p, p.sum(0)]
            step += 1
            for w, g, m, v in zip(weights, gradients, first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                w -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return [w.astype(np.float32) for w in weights]


def build(table, bias, head, head_bias):
    """The graph: pixels [n, 64] of 0..16 -> digit, confidence, probabilities."""
    pixels = op.parameter([-1, PIXELS], np.int32, name="pixels")
    pixels.output(0).set_names({"pixels"})
    offsets = op.constant((np.arange(PIXELS) * LEVELS).astype(np.int32))
    axis0, axis1 = op.constant(np.int64(0)), op.constant(np.int64(1))
    tokens = op.add(pixels, offsets, name="tokens")
    vectors = op.gather(op.constant(table, name="table"), tokens, axis0, name="vectors")
    summed = op.reduce_sum(vectors, axis1, False, name="summed")
    hidden = op.relu(op.add(summed, op.constant(bias)), name="hidden")
    products = op.multiply(op.unsqueeze(hidden, op.constant(np.int64(2))), op.constant(head[None]), name="products")
    logits = op.add(op.reduce_sum(products, axis1, False), op.constant(head_bias), name="logits")
    largest = op.reduce_max(logits, axis1, True, name="largest")
    exponentials = op.exp(op.subtract(logits, largest), name="exponentials")
    probabilities = op.divide(exponentials, op.reduce_sum(exponentials, axis1, True), name="probabilities")
    # The first class whose logit is the largest.
    classes = op.constant(np.arange(CLASSES, dtype=np.int32)[None])
    candidates = op.select(op.equal(logits, largest), classes, op.constant(np.int32(CLASSES)), name="candidates")
    best = op.reduce_min(candidates, axis1, True, name="best")
    confidence = op.gather_elements(probabilities, best, 1, name="confidence")
    names = ov.op.Constant(ov.Tensor(np.array(NAMES)))
    names.set_friendly_name("names")
    digit = op.gather(names, best, axis0, name="digit")
    results = []
    for node in (digit, confidence, probabilities):
        node.output(0).set_names({node.get_friendly_name()})
        results.append(op.result(node))
    return ov.Model(results, [pixels], "digits")


def main():
    digits = load_digits()
    images, labels = digits.data.astype(np.int64), digits.target
    held_out = np.arange(len(images)) % 5 == 0
    weights = train(images[~held_out], labels[~held_out])
    model = build(*weights)
    ov.save_model(model, os.path.join(HERE, "digits.xml"), compress_to_fp16=False)
    table, bias, head, head_bias = weights
    tokens = images + np.arange(PIXELS) * LEVELS
    found = (np.maximum(table[tokens].sum(1) + bias, 0) @ head + head_bias).argmax(1)
    print(f"right on {(found == labels)[held_out].mean():.1%} of {held_out.sum()} digits it was not trained on")
    tests = np.flatnonzero(held_out)
    seven = tests[labels[tests] == 7][0]
    np.save(os.path.join(HERE, "seven.npy"), images[[seven]].astype(np.int32))
    np.save(os.path.join(HERE, "ten_digits.npy"), images[[tests[labels[tests] == k][1] for k in range(10)]].astype(np.int32))


if __name__ == "__main__":
    main()
