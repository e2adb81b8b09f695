"""The program `vinelift`, which comes with the package, and the texts that it shows of a model."""

from __future__ import annotations

import html
import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._library import FOLDER, Error

if TYPE_CHECKING:
    from ._compiled import CompiledModel

PROGRAM = Path(
    os.environ.get("VINELIFT_PROGRAM") or FOLDER / "bin" / ("vinelift.exe" if os.name == "nt" else "vinelift")
)
"""The file of the program; the variable ``VINELIFT_PROGRAM`` names another one."""

_EXPLAINED = ("nest", "fused", "scheduled")
# The properties that a dump depends on, and the options for them.
_OPTIONS = {"VINELIFT_VECTORS": "--vectors", "VINELIFT_SPECIALIZATION": "--specialize"}


class Text(str):
    """A text that notebooks show in a fixed pitch."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


def dump(compiled: CompiledModel, stage: str, layer: str | None, shapes: Any, options: dict[str, Any]) -> Text:
    """The text that ``vinelift dump`` prints of a model."""
    from ._shapes import PartialShape

    source = compiled._source
    if source is None:
        raise Error("where this model comes from is not known, so there is no dump of it: compile one that was read")
    wanted = {name: shape for name, shape in source.shapes.items() if shape.is_static}
    wanted.update({name: PartialShape(shape) for name, shape in (shapes or {}).items()})
    arguments = ["--stage", stage]
    if layer is not None:
        arguments += ["--layer", layer]
    for name, shape in wanted.items():
        arguments += ["--shape", f"{name}={','.join(map(str, shape))}"]
    for key, option in _OPTIONS.items():
        arguments += [option, str(compiled.get_property(key))]
    for key, value in options.items():
        option = f"--{key.replace('_', '-')}"
        arguments += [option] if value is True else [option, str(value)]
    with tempfile.TemporaryDirectory() as folder:
        model = _as_file(source.model, folder, "model.xml")
        if source.weights is not None:
            arguments += ["--weights", _as_file(source.weights, folder, "model.bin")]
        done = subprocess.run([PROGRAM, "dump", model, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(done.stderr.strip().removeprefix("error: "))
    return Text(done.stdout)


def explain(compiled: CompiledModel, layer: str, shapes: Any) -> Text:
    """The dumps of several stages, one after the other."""
    parts = [f"── {stage} ──\n{dump(compiled, stage, layer, shapes, {})}" for stage in _EXPLAINED]
    return Text("\n".join(parts))


def _as_file(content: str | bytes, folder: str, name: str) -> str:
    if isinstance(content, str):
        return content
    path = os.path.join(folder, name)
    Path(path).write_bytes(content)
    return path
