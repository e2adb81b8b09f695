"""Layouts: the meanings of the dimensions of a tensor."""

from __future__ import annotations

from ._library import C, Handle, ask_handle, take_text, text


class Layout:
    """The meanings of the dimensions of a tensor, such as ``NCHW`` or ``[N,C,H,W]``."""

    __slots__ = ("_handle", "_text")

    def __init__(self, layout: str = "...") -> None:
        self._handle = Handle(ask_handle(C.ov_layout_create, text(layout)), C.ov_layout_free)
        self._text = take_text(C.ov_layout_to_string(self._handle))

    @property
    def _names(self) -> list[str]:
        return self._text.removeprefix("[").removesuffix("]").split(",")

    @property
    def empty(self) -> bool:
        """Whether it says nothing."""
        return self._text in ("", "...", "[...]")

    def has_name(self, name: str) -> bool:
        """Whether a dimension has this name."""
        return name in self._names

    def get_index_by_name(self, name: str) -> int:
        """The position of the dimension of this name; after ``...`` counted from the end."""
        names = self._names
        if name not in names:
            raise RuntimeError(f"the layout {self} has no dimension '{name}'")
        position = names.index(name)
        return position - len(names) if "..." in names[:position] else position

    def to_string(self) -> str:
        """As ``[N,C,H,W]``."""
        return self._text

    __str__ = to_string

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            other = Layout(other)
        return self._text == other._text if isinstance(other, Layout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"<Layout: {self}>"
