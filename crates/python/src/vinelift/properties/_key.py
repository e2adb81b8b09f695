"""A key of a property."""

from __future__ import annotations

from typing import Any


class Key(str):
    """The text of a key. Called without anything it is that text, with a value the pair that ``config`` takes."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        return (str(self), *value) if value else str(self)
