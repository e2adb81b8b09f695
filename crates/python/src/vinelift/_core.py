"""Reading and compiling."""

from __future__ import annotations

import ctypes
import io
import os
from dataclasses import dataclass
from typing import Any, BinaryIO, Union

import numpy as np

from ._compiled import CompiledModel
from ._declarations import Devices, DeviceVersions, VersionTexts
from ._library import C, Handle, ask_handle, ask_text, check, text
from ._model import Model, Source
from ._properties import pairs, read_value, to_array
from ._tensor import Tensor

PathLike = Union[str, "os.PathLike[str]"]
Weights = Union[PathLike, bytes, bytearray, memoryview, Tensor, BinaryIO, None]
ModelLike = Union[PathLike, bytes, bytearray, memoryview, BinaryIO]


@dataclass(frozen=True)
class Version:
    """The version of a device or of the library."""

    build_number: str
    description: str

    @property
    def major(self) -> int:
        """The year of the interface."""
        return int(self.build_number.split(".")[0])

    @property
    def minor(self) -> int:
        """The number of the interface in its year."""
        return int(self.build_number.split(".")[1])

    def __repr__(self) -> str:
        return f"<Version: {self.build_number} {self.description}>"


class Core:
    """Reads and compiles models."""

    __slots__ = ("_handle", "__weakref__")

    def __init__(self) -> None:
        self._handle = Handle(ask_handle(C.ov_core_create), C.ov_core_free)

    def read_model(self, model: ModelLike, weights: Weights = None, config: Any = None) -> Model:
        """Reads a model in OpenVINO's IR: from a path, with its weights beside it or at another path; or from bytes, with
        weights as bytes or a tensor."""
        if config:
            self.set_property(config)
        if isinstance(model, (str, os.PathLike)):
            path = os.fspath(model)
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            beside = None if weights is None else self._path(weights)
            pointer = ask_handle(
                C.ov_core_read_model, self._handle, _encoded(path), None if beside is None else _encoded(beside)
            )
            return Model(pointer, Source(os.path.abspath(path), None if beside is None else os.path.abspath(beside)))
        content = _bytes(model, "model")
        data = b"" if weights is None else _bytes_of_weights(weights)
        tensor = None
        if data:
            tensor = Tensor(np.frombuffer(data, np.uint8), shared_memory=True)._handle
        read = C.ov_core_read_model_from_memory_buffer
        return Model(ask_handle(read, self._handle, content, len(content), tensor), Source(content, data or None))

    @staticmethod
    def _path(weights: Any) -> str:
        if not isinstance(weights, (str, os.PathLike)):
            raise TypeError(f"the weights of a model from a path must be a path, found {type(weights).__name__}")
        return os.fsdecode(os.fspath(weights))

    def compile_model(
        self, model: Model | ModelLike, device_name: str | None = None, config: Any = None, *, weights: Weights = None
    ) -> CompiledModel:
        """Compiles a model, or reads one and compiles it. The devices ``CPU``, ``AUTO`` and ``VINELIFT`` are this engine."""
        if isinstance(device_name, dict) and config is None:
            device_name, config = None, device_name
        if not isinstance(model, Model):
            model = self.read_model(model, weights)
        properties = to_array(config)
        device = text(device_name or "AUTO")
        compile = C.ov_core_compile_model_props
        pointer = ask_handle(compile, self._handle, model._handle, device, len(properties), properties)
        source = model._source
        return CompiledModel(pointer, source and Source(source.model, source.weights, dict(source.shapes)))

    def import_model(self, model_stream: Any, device_name: str = "CPU", config: Any = None) -> CompiledModel:
        """A model that :meth:`CompiledModel.export_model` has given."""
        content = _bytes(model_stream, "model")
        if config:
            self.set_property(device_name, config)
        pointer = ask_handle(C.ov_core_import_model, self._handle, content, len(content), text(device_name))
        return CompiledModel(pointer)

    @property
    def available_devices(self) -> list[str]:
        """The names of the devices."""
        found = Devices()
        check(C.ov_core_get_available_devices(self._handle, ctypes.byref(found)))
        try:
            return [name.decode() for name in found.devices[: found.size]]
        finally:
            C.ov_available_devices_free(ctypes.byref(found))

    def get_available_devices(self) -> list[str]:
        """The names of the devices."""
        return self.available_devices

    def get_versions(self, device_name: str) -> dict[str, Version]:
        """The version of a device."""
        found = DeviceVersions()
        check(C.ov_core_get_versions_by_device_name(self._handle, text(device_name), ctypes.byref(found)))
        try:
            listed = found.versions[: found.size]
            return {each.device_name.decode(): _version(each.version) for each in listed}
        finally:
            C.ov_core_versions_free(ctypes.byref(found))

    def get_property(self, device_name: str, property: str | None = None) -> Any:
        """A property of a device: of that which is chosen, if none is named."""
        device, key = ("AUTO", device_name) if property is None else (device_name, property)
        return read_value(str(key), ask_text(C.ov_core_get_property, self._handle, text(device), text(str(key))))

    def set_property(self, device_name: Any, properties: Any = None) -> None:
        """Sets properties of what is compiled from now on."""
        device, wanted = ("AUTO", device_name) if properties is None else (device_name, properties)
        array = to_array(pairs(wanted))
        check(C.ov_core_set_properties(self._handle, text(device), len(array), array))

    def __repr__(self) -> str:
        return "<Core>"


def _version(texts: VersionTexts) -> Version:
    return Version(texts.build_number.decode(), texts.description.decode())


def get_version() -> str:
    """The version of the interface, then that of this library."""
    found = VersionTexts()
    check(C.ov_get_openvino_version(ctypes.byref(found)))
    try:
        return _version(found).build_number
    finally:
        C.ov_version_free(ctypes.byref(found))


def _encoded(path: str) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"a path cannot hold the character NUL: {path!r}")
    return encoded


def _bytes(given: Any, what: str) -> bytes:
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    if isinstance(given, io.IOBase) or hasattr(given, "read"):
        found = given.read()
        if isinstance(found, bytes):
            return found
    raise TypeError(f"the {what} must be a path, bytes or a file of bytes, found {type(given).__name__}")


def _bytes_of_weights(weights: Any) -> bytes:
    if isinstance(weights, Tensor):
        return bytes(weights.data.tobytes())
    if isinstance(weights, np.ndarray):
        return weights.tobytes()
    if isinstance(weights, (str, os.PathLike)):
        with open(weights, "rb") as file:
            return file.read()
    return _bytes(weights, "weights")


def read_model(model: ModelLike, weights: Weights = None) -> Model:
    """Reads a model, as :meth:`Core.read_model`."""
    return Core().read_model(model, weights)


def compile_model(
    model: Model | ModelLike, device_name: str | None = "AUTO", config: Any = None, *, weights: Weights = None
) -> CompiledModel:
    """Compiles a model, as :meth:`Core.compile_model`."""
    return Core().compile_model(model, device_name, config, weights=weights)
