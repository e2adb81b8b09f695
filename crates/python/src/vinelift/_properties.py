"""Properties: from Python's values to the library's texts, and back."""

from __future__ import annotations

import enum
from typing import Any, Iterable, Mapping

from ._declarations import Property
from ._library import text
from ._types import Type

_LISTS = ("EXECUTION_DEVICES", "OPTIMIZATION_CAPABILITIES", "AVAILABLE_DEVICES")
_READ_ONLY = (
    "SUPPORTED_PROPERTIES",
    "FULL_DEVICE_NAME",
    "DEVICE_TYPE",
    "DEVICE_ARCHITECTURE",
    "NETWORK_NAME",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    *_LISTS,
)
_TEXTS = ("DEVICE_ID", "CACHE_DIR", "NETWORK_NAME", "FULL_DEVICE_NAME", "VINELIFT_VECTORS")


def write_value(value: Any) -> str:
    """A value as the library takes it."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, Type):
        return value.get_type_name()
    if isinstance(value, (str, int, float)) or hasattr(value, "__index__"):
        return str(value)
    raise TypeError(f"the value of a property must be a text, number or bool, found {value!r}")


def read_value(key: str, value: str, *, of_model: bool = False) -> Any:
    """A value as Python has it."""
    if key == "SUPPORTED_PROPERTIES":
        return {name: _access(name, of_model) for name in value.split()}
    if key.startswith("RANGE_FOR_"):
        return tuple(map(int, value.split()))
    if key in _LISTS:
        return value.replace(",", " ").split()
    if key in _TEXTS:
        return value
    if value in ("YES", "NO"):
        return value == "YES"
    try:
        return int(value)
    except ValueError:
        return value


def _access(name: str, of_model: bool) -> str:
    return "RO" if of_model or name in _READ_ONLY or name.startswith("RANGE_FOR_") else "RW"


def pairs(properties: Any) -> list[tuple[str, Any]]:
    """Properties from a dict, a pair, or a list of pairs."""
    if properties is None:
        return []
    if isinstance(properties, Mapping):
        return [(str(key), value) for key, value in properties.items()]
    if isinstance(properties, tuple) and len(properties) == 2 and isinstance(properties[0], str):
        return [(properties[0], properties[1])]
    if isinstance(properties, Iterable) and not isinstance(properties, str):
        return [pair for each in properties for pair in pairs(each)]
    raise TypeError(f"properties must be a dict or pairs, found {properties!r}")


def to_array(properties: Any) -> Any:
    """Properties for the library."""
    made = [Property(text(str(key)), text(write_value(value))) for key, value in pairs(properties)]
    return (Property * len(made))(*made)
