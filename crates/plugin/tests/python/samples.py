"""The samples of the repository: small models, one or more for each operator, with inputs and expected outputs."""

import json
import re
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[4]
GOLDEN = REPOSITORY / "tests/golden"
TENSOR = re.compile(r"(?P<type>\w+)\[(?P<shape>[\d, ]*)\] =(?P<values>.*)")
TYPES = {"boolean": bool, "f16": np.float16, "f32": np.float32, "f64": np.float64}
TYPES |= {f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)}


def tensor(text):
    """The tensor that a line of a case writes out."""
    found = TENSOR.fullmatch(text)
    shape = [int(one) for one in found["shape"].split(",") if one.strip()]
    kind, values = found["type"], found["values"].strip()
    if kind == "string":
        return np.array(json.loads(f"[{values}]"), str).reshape(shape)
    items = [one.strip() for one in values.split(",") if one.strip()]
    read = {"b": lambda item: item == "true", "f": float}.get(np.dtype(TYPES[kind]).kind, int)
    return np.array([read(item) for item in items], TYPES[kind]).reshape(shape)


class Step:
    """One inference: inputs by name; and outputs in order, or an error."""

    def __init__(self):
        self.inputs, self.outputs, self.error = {}, [], None


class Case:
    """A model, and what it makes of inputs in runs that follow each other."""

    def __init__(self, path):
        self.name = str(path.relative_to(GOLDEN).with_suffix(""))
        self.model = REPOSITORY / "ir-samples" / f"{self.name}.xml"
        self.steps, self.close, self.policy = [Step()], 0.0, "spec"
        for line in path.read_text().splitlines():
            word, _, rest = line.partition(" ")
            step = self.steps[-1]
            if word == "input":
                name, _, text = rest.partition(": ")
                step.inputs[name] = tensor(text)
            elif word == "output":
                step.outputs.append(tensor(rest.partition(": ")[2]))
            elif word == "error":
                step.error = rest
            elif word == "step":
                self.steps.append(Step())
            elif word == "close":
                self.close = float(rest)
            elif word == "index-policy":
                self.policy = rest

    def fails(self):
        return any(step.error for step in self.steps)

    def run(self, core, device, config):
        """The outputs of each step."""
        compiled = core.compile_model(core.read_model(self.model), device, config)
        # Names are those of tensors, or else of layers.
        places = {port.get_node().get_friendly_name(): k for k, port in enumerate(compiled.inputs)}
        places |= {name: k for k, port in enumerate(compiled.inputs) for name in port.names}
        request, found = compiled.create_infer_request(), []
        for step in self.steps:
            inputs = {places[name]: value for name, value in step.inputs.items()}
            found.append([np.array(value) for value in request.infer(inputs).values()])
        return found


def difference(found, expected, close):
    """Why two lists of tensors are not equal; empty if they are."""
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for k, (one, other) in enumerate(zip(found, expected)):
        if one.shape != other.shape:
            return f"output {k}: {one.shape}, expected {other.shape}"
        if one.size == 0:
            continue
        if one.dtype.kind == "f" and close:
            equal = np.isclose(one, other, rtol=close, atol=close, equal_nan=True).all()
        else:
            equal = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
        if not equal:
            return f"output {k}: {one.tolist()}, expected {other.tolist()}"[:400]
    return ""


CASES = [Case(path) for path in sorted(GOLDEN.glob("*/*.run"))]
