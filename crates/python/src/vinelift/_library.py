"""The C library: where it is, its functions, and the rule that makes exceptions of its errors.

Functions are called through :class:`ctypes.CDLL`, which lets go of Python's global lock during each call: other threads
of Python go on while a model runs.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_size_t, c_void_p
from pathlib import Path
from typing import Any, Callable

from ._declarations import declare

FOLDER = Path(__file__).resolve().parent
LIBRARY = Path(os.environ.get("VINELIFT_LIBRARY") or FOLDER / "libopenvino_c.so")
"""The file of the C library; the variable ``VINELIFT_LIBRARY`` names another one."""


class Error(RuntimeError):
    """An error of the library. `status` is its number in OpenVINO's C API."""

    def __init__(self, message: str, status: int = -1) -> None:
        super().__init__(message)
        self.status = status


BUSY, NOT_READY, CANCELLED = -8, -9, -13


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(os.fspath(LIBRARY))
        declare(library)
        return library
    except (OSError, AttributeError) as error:
        raise ImportError(f"the library of Vinelift cannot be loaded: {error}") from None


C = _load()


def failure(status: int) -> Error:
    """The exception for the last call of this thread, which has returned `status`."""
    address = C.ov_get_last_err_msg()
    if address:
        message = take_text(address)
    else:
        message = C.ov_get_error_info(status).decode()
    return Error(message, status)


def check(status: int) -> None:
    """Raises the exception for a status that is none of success."""
    if status:
        raise failure(status)


def take_text(address: int | None) -> str:
    """The text that the library has made for us, which is freed."""
    if not address:
        return ""
    text = ctypes.string_at(address).decode("utf-8", "replace")
    C.ov_free(address)
    return text


def ask_text(function: Callable[..., int], *arguments: Any) -> str:
    """Calls a function whose last parameter is for a text."""
    out = c_void_p()
    check(function(*arguments, byref(out)))
    return take_text(out.value)


def ask_number(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function whose last parameter is for a number."""
    out = c_size_t()
    check(function(*arguments, byref(out)))
    return out.value


class Pointer(int):
    """Where something is that the library has made. No other number is taken for it."""

    __slots__ = ()


def ask_handle(function: Callable[..., int], *arguments: Any) -> Pointer:
    """Calls a function whose last parameter is for a handle."""
    out = c_void_p()
    check(function(*arguments, byref(out)))
    assert out.value is not None
    return Pointer(out.value)


def texts(items: list[str]) -> Any:
    """An array of texts. They cannot hold a NUL, which ends a text in C."""
    return (c_char_p * len(items))(*map(text, items))


def text(item: str) -> bytes:
    """A text for the library."""
    if not isinstance(item, str):
        raise TypeError(f"expected a str, found {type(item).__name__}")
    if "\0" in item:
        raise ValueError(f"a text of the library cannot hold the character NUL: {item!r}")
    return item.encode("utf-8")


class Handle:
    """Owns something that the library has made, and frees it once."""

    __slots__ = ("_as_parameter_", "_free", "__weakref__")

    def __init__(self, pointer: Pointer, free: Callable[[int], None]) -> None:
        self._as_parameter_, self._free = 0, free
        if not isinstance(pointer, Pointer):
            raise TypeError(f"this is made by the functions that give it, and not of {pointer!r}")
        self._as_parameter_ = pointer

    def __del__(self) -> None:
        # The object holds the function that frees it: when the interpreter ends, names of modules may be gone.
        pointer = self._as_parameter_
        if pointer:
            self._as_parameter_ = 0
            self._free(pointer)
