"""Models that can run."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any, BinaryIO

from ._dump import EXPLAINED, Text, dump
from ._inputs import NEVER
from ._library import C, Error, Handle, Pointer, ask_handle, ask_text, check, text
from ._model import Model, Source, describe_ports
from ._ports import ConstOutput, HasPorts, Ports
from ._properties import read_value, to_array
from ._request import InferRequest, VariableState
from ._results import OVDict

# Larger inputs of a call are read where they are.
_COPIED = 1 << 16


class CompiledModel(HasPorts):
    """A model that can run, from :meth:`Core.compile_model`. Any number of threads may call it at a time."""

    __slots__ = ("_handle", "_source", "_sides", "_idle", "__weakref__")

    def __init__(self, pointer: Pointer, source: Source | None = None) -> None:
        self._handle = Handle(pointer, C.ov_compiled_model_free)
        self._source = source
        self._sides: tuple[Ports, Ports] | None = None
        # Tensors and variables for calls. They hold the handle and not this, or there would be a circle.
        self._idle: list[InferRequest] = []

    def _ports(self) -> tuple[Ports, Ports]:
        if self._sides is None:
            owner, h = self._handle, self._handle
            inputs = Ports.ask(
                ConstOutput, "input", owner, C.ov_compiled_model_inputs_size, C.ov_compiled_model_input_by_index, h
            )
            outputs = Ports.ask(
                ConstOutput, "output", owner, C.ov_compiled_model_outputs_size, C.ov_compiled_model_output_by_index, h
            )
            self._sides = inputs, outputs
        return self._sides

    def __call__(
        self, inputs: Any = None, share_inputs: bool = True, share_outputs: bool = False, *, decode_strings: bool = True
    ) -> OVDict:
        """Runs on this thread, and gives the outputs, as :meth:`InferRequest.infer`."""
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._new_request()
        try:
            return request._infer(inputs, _COPIED if share_inputs else NEVER, share_outputs, decode_strings)
        finally:
            self._idle.append(request)

    def _new_request(self) -> InferRequest:
        # Requests refer to a twin of this that has no requests of its own.
        twin = object.__new__(CompiledModel)
        twin._handle, twin._source, twin._sides = self._handle, self._source, self._ports()
        twin._idle = []
        return InferRequest(twin)

    def create_infer_request(self) -> InferRequest:
        """A request with tensors and variables of its own."""
        return InferRequest(self)

    def infer_new_request(self, inputs: Any = None, *, decode_strings: bool = True) -> OVDict:
        """Runs with a request that is made for it."""
        return self.create_infer_request().infer(inputs, decode_strings=decode_strings)

    def query_state(self) -> list[VariableState]:
        """The variables of the request that calls use, as far as they come one after the other."""
        if not self._idle:
            self._idle.append(self._new_request())
        return self._idle[-1].query_state()

    def reset_state(self) -> None:
        """Has all variables hold nothing."""
        for request in list(self._idle):
            request.reset_state()

    def release_memory(self) -> None:
        """Frees the tensors that calls have used."""
        self._idle.clear()

    def get_property(self, key: str) -> Any:
        """A property that the model was compiled with, or that tells of it."""
        return read_value(key, ask_text(C.ov_compiled_model_get_property, self._handle, text(str(key))), of_model=True)

    def set_property(self, properties: Any) -> None:
        """Properties of a compiled model cannot be changed: this says so."""
        array = to_array(properties)
        check(C.ov_compiled_model_set_properties(self._handle, len(array), array))

    def get_runtime_model(self) -> Model:
        """The model that runs."""
        return Model(ask_handle(C.ov_compiled_model_get_runtime_model, self._handle), self._source)

    def export_model(self, user_stream: BinaryIO | None = None) -> BinaryIO:
        """The model as bytes for :meth:`Core.import_model`, in a new stream or one that is given. It has no code, which is
        made for the machine that imports it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            check(C.ov_compiled_model_export_model(self._handle, os.fsencode(path)))
            with open(path, "rb") as file:
                exported = file.read()
        if user_stream is None:
            return io.BytesIO(exported)
        # Readers of the stream begin where the export begins.
        start = user_stream.tell() if user_stream.seekable() else None
        user_stream.write(exported)
        if start is not None:
            user_stream.seek(start)
        return user_stream

    def dump(self, stage: str = "scheduled", *, layer: str | None = None, shapes: Any = None, **options: Any) -> Text:
        """A stage of the model's way to machine code as text: ``graph``, ``dot``, ``nest``, ``fused``, ``scheduled``,
        ``clif``, ``vcode`` or ``asm``; only what a layer is part of, if one is named. Inputs whose shapes are dynamic need
        `shapes`, by name. Other options are those of ``vinelift dump``, as in ``kernel=3``."""
        if self._source is None:
            raise Error(
                "where this model comes from is not known, so there is no dump of it: compile one that was read"
            )
        return dump(self._source, self.get_property, stage, layer, shapes, options)

    def explain(self, layer: str, *, shapes: Any = None) -> Text:
        """The compilation of a layer, stage by stage."""
        parts = [f"── {stage} ──\n{self.dump(stage, layer=layer, shapes=shapes)}" for stage in EXPLAINED]
        return Text("\n".join(parts))

    def __repr__(self) -> str:
        return f"<CompiledModel:\n{describe_ports(self.inputs, self.outputs)}>"
