"""The program `vinelift`, which comes with the package, and the texts that it shows of a model."""

from __future__ import annotations

import html
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable

from ._library import FOLDER, Error
from ._model import Source
from ._shapes import PartialShape

PROGRAM = Path(
    os.environ.get("VINELIFT_PROGRAM") or FOLDER / "bin" / ("vinelift.exe" if os.name == "nt" else "vinelift")
)
"""The file of the program; the variable ``VINELIFT_PROGRAM`` names another one."""

EXPLAINED = ("nest", "fused", "scheduled")
"""The stages of an explanation."""

# The properties that a dump depends on, and the options for them.
_OPTIONS = {"VINELIFT_VECTORS": "--vectors", "VINELIFT_SPECIALIZATION": "--specialize"}


class Text(str):
    """A text that notebooks show in a fixed pitch."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


def dump(
    source: Source,
    get_property: Callable[[str], Any],
    stage: str,
    layer: str | None,
    shapes: Any,
    options: dict[str, Any],
) -> Text:
    """The text that ``vinelift dump`` prints of a model with these properties."""
    wanted = {name: shape for name, shape in source.shapes.items() if shape.is_static}
    wanted.update({name: PartialShape(shape) for name, shape in (shapes or {}).items()})
    arguments = ["--stage", stage]
    if layer is not None:
        arguments += ["--layer", layer]
    for name, shape in wanted.items():
        arguments += ["--shape", f"{name}={','.join(map(str, shape))}"]
    for key, option in _OPTIONS.items():
        arguments += [option, str(get_property(key))]
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


def _as_file(content: str | bytes, folder: str, name: str) -> str:
    if isinstance(content, str):
        return content
    path = os.path.join(folder, name)
    Path(path).write_bytes(content)
    return path
