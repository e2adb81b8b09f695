"""Models that are read, and whose shapes can change."""

from __future__ import annotations

from ctypes import c_size_t
from dataclasses import dataclass, field
from typing import Any, Mapping

from ._declarations import Dims
from ._extents import to_dims
from ._library import C, Error, Handle, Pointer, ask_text, check
from ._ports import ConstOutput, HasPorts, Key, Output, Ports
from ._shapes import PartialShape, ShapeLike


@dataclass
class Source:
    """Where a model comes from: a path, or bytes; and the shapes that its inputs were given since."""

    model: str | bytes
    weights: str | bytes | None = None
    shapes: dict[str, PartialShape] = field(default_factory=dict)


class Model(HasPorts):
    """A model, from :meth:`Core.read_model`."""

    __slots__ = ("_handle", "_source", "_sides", "__weakref__")

    def __init__(self, pointer: Pointer, source: Source | None = None) -> None:
        self._handle = Handle(pointer, C.ov_model_free)
        self._source = source
        self._sides: tuple[Ports, Ports] | None = None

    def _ports(self) -> tuple[Ports, Ports]:
        if self._sides is None:
            # Ports must not keep the model in a circle; the handle stands for it.
            owner, h = self._handle, self._handle
            self._sides = (
                Ports.ask(Output, "input", owner, C.ov_model_inputs_size, C.ov_model_input_by_index, h),
                Ports.ask(Output, "output", owner, C.ov_model_outputs_size, C.ov_model_output_by_index, h),
            )
        return self._sides

    def reshape(self, shapes: ShapeLike | Mapping[Key, ShapeLike]) -> None:
        """Gives inputs other shapes: one shape for the only input, or shapes by name, position or port."""
        if isinstance(shapes, Mapping):
            if not shapes:
                raise Error("there are no shapes to give to inputs")
            wanted = {self._ports()[0].position(key): PartialShape(shape) for key, shape in shapes.items()}
        else:
            wanted = {self._ports()[0].position(None): PartialShape(shapes)}
        dims = [to_dims(shape) for shape in wanted.values()]
        count = len(wanted)
        positions = (c_size_t * count)(*wanted)
        check(C.ov_model_reshape_by_port_indexes(self._handle, positions, (Dims * count)(*dims), count))
        if self._source is not None:
            named = {self._ports()[0].all[k].any_name: shape for k, shape in wanted.items()}
            self._source.shapes.update(named)

    def is_dynamic(self) -> bool:
        """Whether the shape of an input or output is not known."""
        return bool(C.ov_model_is_dynamic(self._handle))

    @property
    def dynamic(self) -> bool:
        """Whether the shape of an input or output is not known."""
        return self.is_dynamic()

    def get_friendly_name(self) -> str:
        """The name that the file gives to the model."""
        return ask_text(C.ov_model_get_friendly_name, self._handle)

    @property
    def friendly_name(self) -> str:
        """The name that the file gives to the model."""
        return self.get_friendly_name()

    def get_name(self) -> str:
        """The name that the file gives to the model."""
        return self.get_friendly_name()

    @property
    def name(self) -> str:
        """The name that the file gives to the model."""
        return self.get_friendly_name()

    def __repr__(self) -> str:
        return f"<Model: '{self.get_friendly_name()}'\n{describe_ports(self.inputs, self.outputs)}>"


def describe_ports(inputs: list[ConstOutput], outputs: list[ConstOutput]) -> str:
    """The ports of a model, one a line."""

    def lines(ports: list[Any]) -> str:
        return ",\n".join(map(repr, ports))

    return f"inputs[\n{lines(inputs)}\n]\noutputs[\n{lines(outputs)}\n]"
