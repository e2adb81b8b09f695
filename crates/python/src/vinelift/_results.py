"""The results of a run."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ._library import Error
from ._ports import ConstOutput, Ports


class OVDict(Mapping[ConstOutput, npt.NDArray[Any]]):
    """The outputs of a run, by port, name or position."""

    __slots__ = ("_ports", "_arrays")

    def __init__(self, ports: Ports, arrays: list[npt.NDArray[Any]]) -> None:
        self._ports, self._arrays = ports, arrays

    def __getitem__(self, key: ConstOutput | str | int) -> npt.NDArray[Any]:
        if key.__class__ is int and 0 <= key < len(self._arrays):
            return self._arrays[key]
        if not isinstance(key, (int, str, ConstOutput, np.integer)):
            raise TypeError(f"an output is meant by its name, position or port, found {key!r}")
        try:
            return self._arrays[self._ports.position(key)]
        except Error:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[ConstOutput]:
        return iter(self._ports.all)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except (KeyError, TypeError):
            return False
        return True

    def to_dict(self) -> dict[ConstOutput, npt.NDArray[Any]]:
        """The arrays by port."""
        return dict(zip(self._ports.all, self._arrays))

    def to_tuple(self) -> tuple[npt.NDArray[Any], ...]:
        """The arrays in the order of outputs."""
        return tuple(self._arrays)

    def names(self) -> tuple[set[str], ...]:
        """The names of each output."""
        return tuple(port.names for port in self._ports.all)

    def __repr__(self) -> str:
        return repr(self.to_dict())
