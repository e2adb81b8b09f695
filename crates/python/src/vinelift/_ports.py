"""Inputs and outputs of models."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence, Union

from ._extents import take_dims
from ._library import C, Error, Handle, Pointer, ask_handle, ask_number, ask_text, check
from ._shapes import PartialShape, Shape
from ._types import BY_CODE, Type


class ConstOutput:
    """An input or output of a compiled model."""

    __slots__ = ("_handle", "_side", "_position", "_owner")

    def __init__(self, pointer: Pointer, side: str, position: int, owner: object) -> None:
        self._handle = Handle(pointer, C.ov_output_port_free)
        self._side, self._position, self._owner = side, position, owner

    def _all_names(self) -> list[str]:
        """All that the port answers to: the names of the tensor, then that of the layer; of an output those of the layer that
        makes it and of the result."""
        count = ask_number(C.vinelift_port_names_size, self._handle)
        return [ask_text(C.vinelift_port_name_by_index, self._handle, k) for k in range(count)]

    @property
    def names(self) -> set[str]:
        """The names of the tensor; there may be none."""
        return set(self._all_names()[: -1 if self._side == "input" else -2])

    def get_names(self) -> set[str]:
        """The names of the tensor; there may be none."""
        return self.names

    @property
    def any_name(self) -> str:
        """One of the names; that of the layer, if there are none."""
        return ask_text(C.ov_port_get_any_name, self._handle)

    def get_any_name(self) -> str:
        """One of the names; that of the layer, if there are none."""
        return self.any_name

    @property
    def element_type(self) -> Type:
        """The type of the elements."""
        code = ctypes.c_uint32()
        check(C.ov_port_get_element_type(self._handle, ctypes.byref(code)))
        return BY_CODE[code.value]

    def get_element_type(self) -> Type:
        """The type of the elements."""
        return self.element_type

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return take_dims(C.ov_port_get_partial_shape, self._handle)

    def get_partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self.partial_shape

    @property
    def shape(self) -> Shape:
        """The shape, if it is known."""
        return self.partial_shape.to_shape()

    def get_shape(self) -> Shape:
        """The shape, if it is known."""
        return self.shape

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConstOutput):
            return NotImplemented
        return (self._owner, self._side, self._position) == (other._owner, other._side, other._position)

    def __hash__(self) -> int:
        return hash((id(self._owner), self._side, self._position))

    def __repr__(self) -> str:
        names = ", ".join(sorted(self.names))
        described = f"names[{names}] shape{self.partial_shape} type: {self.element_type.get_type_name()}"
        return f"<{type(self).__name__}: {described}>"


class Output(ConstOutput):
    """An input or output of a model, whose shape can change."""

    __slots__ = ()


Key = Union[int, str, ConstOutput]


class Ports:
    """The ports on a side of a model, and which of them is meant by a name, a position or a port."""

    __slots__ = ("side", "all", "_by_name")

    def __init__(self, side: str, all: Sequence[ConstOutput]) -> None:
        self.side, self.all = side, list(all)
        self._by_name: dict[str, int] = {}
        for k, port in reversed(list(enumerate(self.all))):
            self._by_name.update((name, k) for name in port._all_names())

    @staticmethod
    def ask(
        kind: type[ConstOutput],
        side: str,
        owner: object,
        size: Callable[..., int],
        get: Callable[..., int],
        handle: Any,
    ) -> Ports:
        """The ports that the library tells of."""
        count = ask_number(size, handle)
        return Ports(side, [kind(ask_handle(get, handle, k), side, k, owner) for k in range(count)])

    def get(self, key: Key | None) -> ConstOutput:
        """The port that is meant; without a key the only one."""
        return self.all[self.position(key)]

    def position(self, key: Key | None) -> int:
        """The position of the port that is meant."""
        count = len(self.all)
        if key is None:
            if count != 1:
                raise Error(f"the model has {count} {self.side}s, expected one, or which is meant")
            return 0
        if isinstance(key, str):
            found = self._by_name.get(key)
            if found is None:
                known = ", ".join(f"'{port.any_name}'" for port in self.all)
                raise Error(f"the model has no {self.side} '{key}', its {self.side}s are {known}")
            return found
        if isinstance(key, ConstOutput):
            return self._position_of_port(key)
        try:
            index = int(key.__index__())
        except AttributeError:
            raise TypeError(f"an {self.side} is meant by its name, position or port, found {key!r}") from None
        if not 0 <= index < count:
            raise PortIndexError(f"the model has no {self.side} {index}, it has {count}")
        return index

    def _position_of_port(self, port: ConstOutput) -> int:
        # Ports of the model from which a model was compiled are also taken.
        k = port._position
        if port._side != self.side or k >= len(self.all) or port.any_name != self.all[k].any_name:
            raise Error(f"the model has no {self.side} {port!r}")
        return k


class HasPorts:
    """A model or compiled model: what has inputs and outputs."""

    __slots__ = ()

    def _ports(self) -> tuple[Ports, Ports]:
        """The inputs, and the outputs."""
        raise NotImplementedError

    @property
    def inputs(self) -> list[ConstOutput]:
        """The inputs."""
        return list(self._ports()[0].all)

    @property
    def outputs(self) -> list[ConstOutput]:
        """The outputs."""
        return list(self._ports()[1].all)

    def input(self, key: Key | None = None) -> ConstOutput:
        """The input of a name or position; without either the only one."""
        return self._ports()[0].get(key)

    def output(self, key: Key | None = None) -> ConstOutput:
        """The output of a name or position; without either the only one."""
        return self._ports()[1].get(key)


class PortIndexError(Error, IndexError):
    """There is no port at a position."""
