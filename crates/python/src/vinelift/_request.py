"""Runs of a compiled model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Callable

from . import _running
from ._inputs import NEVER, fill_all
from ._library import BUSY, CANCELLED, NOT_READY, C, Error, Handle, ask_handle, ask_number, ask_text, failure
from ._ports import ConstOutput, Key, Ports
from ._profile import ProfilingInfo, profile
from ._results import OVDict
from ._slots import Slot
from ._tensor import Tensor

if TYPE_CHECKING:
    from ._compiled import CompiledModel


class VariableState:
    """A variable of a request, which keeps what it holds from one run to the next."""

    __slots__ = ("_request", "_position", "_name")

    def __init__(self, request: InferRequest, position: int, name: str) -> None:
        self._request, self._position, self._name = request, position, name

    @property
    def name(self) -> str:
        """The name of the variable."""
        return self._name

    @property
    def state(self) -> Tensor:
        """A copy of what it holds; zeros before the first run. It can be set."""
        handle = self._request._handle
        return Tensor._of_handle(ask_handle(C.vinelift_infer_request_get_variable, handle, self._position))

    @state.setter
    def state(self, value: Any) -> None:
        tensor = value if isinstance(value, Tensor) else Tensor(value)
        status = C.vinelift_infer_request_set_variable(self._request._handle, self._position, tensor._handle)
        if status:
            raise failure(status)

    def reset(self) -> None:
        """Has it hold nothing: the next run starts with its initial value."""
        status = C.vinelift_infer_request_reset_variable(self._request._handle, self._position)
        if status:
            raise failure(status)

    def __repr__(self) -> str:
        return f"<VariableState: {self._name}>"


class InferRequest:
    """Runs of a compiled model, one at a time, with tensors and variables of their own."""

    __slots__ = (
        "_handle", "_compiled", "_inputs", "_outputs", "_input_ports", "_output_ports", "_start", "_end", "_has_started",
        "_callback", "_userdata", "_hook", "_token", "__weakref__",
    )  # fmt: skip

    def __init__(self, compiled: CompiledModel) -> None:
        from ._compiled import CompiledModel

        if not isinstance(compiled, CompiledModel):
            raise TypeError(f"expected a CompiledModel, found {type(compiled).__name__}")
        self._handle = Handle(
            ask_handle(C.ov_compiled_model_create_infer_request, compiled._handle), C.ov_infer_request_free
        )
        self._compiled = compiled
        self._input_ports, self._output_ports = compiled._ports()
        h = self._handle
        get, put = C.ov_infer_request_get_input_tensor_by_index, C.ov_infer_request_set_input_tensor_by_index
        self._inputs = [Slot(h, k, port, get, put) for k, port in enumerate(self._input_ports.all)]
        get, put = C.ov_infer_request_get_output_tensor_by_index, C.ov_infer_request_set_output_tensor_by_index
        self._outputs = [Slot(h, k, port, get, put) for k, port in enumerate(self._output_ports.all)]
        self._start = self._end = 0
        self._has_started = False
        self._callback: Callable[[Any], Any] | None = None
        self._userdata: Any = None
        self._hook: Callable[[Error | None], None] | None = None
        self._token: int | None = None

    # Runs.

    def infer(
        self,
        inputs: Any = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
    ) -> OVDict:
        """Runs on this thread, and gives the outputs. Inputs are by name, position or port in a dict, in order in a list or
        tuple, or one array. With `share_inputs` arrays are read where they are, with `share_outputs` the results are the
        memory of the request, which its next run writes."""
        return self._infer(inputs, 0 if share_inputs else NEVER, share_outputs, decode_strings)

    def _infer(self, inputs: Any, share_from: int, share_outputs: bool, decode_strings: bool) -> OVDict:
        """As :meth:`infer`; arrays of at least `share_from` bytes are read where they are."""
        if inputs is not None:
            self._fill(inputs, share_from)
        self._start = time.perf_counter_ns()
        status = C.ov_infer_request_infer(self._handle)
        self._end = time.perf_counter_ns()
        if status:
            raise failure(status)
        return self._results(share_outputs, decode_strings)

    def _fill(self, inputs: Any, share_from: int) -> None:
        if _running.holds(self):
            raise Error("the request is running", BUSY)
        fill_all(self._inputs, self._input_ports, inputs, share_from)

    def _results(self, is_shared: bool, decode_strings: bool = True) -> OVDict:
        arrays = [slot.result(is_shared, decode_strings) for slot in self._outputs]
        return OVDict(self._output_ports, arrays)

    @property
    def results(self) -> OVDict:
        """The outputs of the last run, as the memory of the request, which its next run writes."""
        return self._results(True)

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Runs on a thread of the library; :meth:`wait` waits for it. `userdata` goes to the callback."""
        if inputs is not None:
            self._fill(inputs, 0 if share_inputs else NEVER)
        if userdata is not None:
            self._userdata = userdata
        self._start, self._end = time.perf_counter_ns(), 0
        _running.start(self)
        self._has_started = True

    def _done(self) -> None:
        """Called on a thread of the library after a run that :meth:`start_async` has started."""
        self._end = time.perf_counter_ns()
        status = C.vinelift_infer_request_outcome(self._handle)
        if self._hook is not None:
            self._hook(failure(status) if status else None)
        elif self._callback is not None and not status:
            self._callback(self._userdata)

    def wait(self) -> None:
        """Waits for the run that was started, and for its callback, and raises why it failed, if it did."""
        # In steps, so that an interrupt of the keyboard is not kept waiting.
        while not self.wait_for(200):
            if not self._has_started:
                return

    def wait_for(self, timeout: int) -> bool:
        """As :meth:`wait`, for at most `timeout` milliseconds. Returns whether the run is over."""
        status = C.ov_infer_request_wait_for(self._handle, int(timeout))
        if status == NOT_READY:
            return False
        if status:
            raise failure(status)
        return True

    def cancel(self) -> None:
        """Ends the run that there is, soon; who waits for it is told so by an exception."""
        C.ov_infer_request_cancel(self._handle)

    def set_callback(self, callback: Callable[[Any], Any] | None, userdata: Any = None) -> None:
        """Has a function called with `userdata` after each run that :meth:`start_async` has started and that did not
        fail, on the thread of the run."""
        if callback is not None and not callable(callback):
            raise TypeError(f"expected a function, found {type(callback).__name__}")
        self._callback, self._userdata = callback, userdata

    @property
    def userdata(self) -> Any:
        """The object that is passed to the callback."""
        return self._userdata

    @property
    def latency(self) -> float:
        """The milliseconds of the last run."""
        return max(0, self._end - self._start) / 1e6

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """The times of the layers in the last run of a model compiled with the property ``PERF_COUNT``."""
        return profile(self._handle)

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """The times of the layers in the last run of a model compiled with the property ``PERF_COUNT``."""
        return profile(self._handle)

    # Tensors.

    def _slot(self, key: Key) -> Slot:
        if isinstance(key, ConstOutput):
            ports, slots = self._side(key)
            return slots[ports.position(key)]
        if not isinstance(key, str):
            raise TypeError(f"a tensor is meant by its name or port, found {key!r}")
        if key in self._input_ports._by_name:
            return self._inputs[self._input_ports._by_name[key]]
        if key in self._output_ports._by_name:
            return self._outputs[self._output_ports._by_name[key]]
        raise Error(f"the model has no input or output '{key}'")

    def _side(self, port: ConstOutput) -> tuple[Ports, list[Slot]]:
        return (self._input_ports, self._inputs) if port._side == "input" else (self._output_ports, self._outputs)

    def get_tensor(self, key: str | ConstOutput) -> Tensor:
        """The tensor of the input or output of a name or port."""
        return self._slot(key).get()

    def set_tensor(self, key: str | ConstOutput, tensor: Tensor) -> None:
        """Sets the tensor of the input or output of a name or port."""
        slot = self._slot(key)
        slot.set(tensor, slot in self._outputs)

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of the input at a position; without it of the only one."""
        return self._inputs[self._input_ports.position(index)].get()

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of the output at a position; without it of the only one."""
        return self._outputs[self._output_ports.position(index)].get()

    def set_input_tensor(self, index: int | Tensor, tensor: Tensor | None = None) -> None:
        """Sets the tensor of the input at a position, or of the only one."""
        which, tensor = (index, tensor) if tensor is not None else (None, index)  # type: ignore[assignment]
        self._inputs[self._input_ports.position(which)].set(tensor, False)  # type: ignore[arg-type]

    def set_output_tensor(self, index: int | Tensor, tensor: Tensor | None = None) -> None:
        """Sets the tensor of the output at a position, or of the only one."""
        which, tensor = (index, tensor) if tensor is not None else (None, index)  # type: ignore[assignment]
        self._outputs[self._output_ports.position(which)].set(tensor, True)  # type: ignore[arg-type]

    def set_tensors(self, tensors: dict[str | ConstOutput, Tensor]) -> None:
        """Sets tensors by name or port."""
        for key, tensor in tensors.items():
            self.set_tensor(key, tensor)

    def set_input_tensors(self, tensors: dict[Any, Tensor]) -> None:
        """Sets the tensors of inputs by position, name or port."""
        for key, tensor in tensors.items():
            self._inputs[self._input_ports.position(key)].set(tensor, False)

    def set_output_tensors(self, tensors: dict[Any, Tensor]) -> None:
        """Sets the tensors of outputs by position, name or port."""
        for key, tensor in tensors.items():
            self._outputs[self._output_ports.position(key)].set(tensor, True)

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors of the inputs."""
        return [slot.get() for slot in self._inputs]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensors of the outputs."""
        return [slot.get() for slot in self._outputs]

    @property
    def model_inputs(self) -> list[ConstOutput]:
        """The inputs of the model."""
        return list(self._input_ports.all)

    @property
    def model_outputs(self) -> list[ConstOutput]:
        """The outputs of the model."""
        return list(self._output_ports.all)

    def get_compiled_model(self) -> CompiledModel:
        """The model that runs."""
        return self._compiled

    # Variables.

    def query_state(self) -> list[VariableState]:
        """The variables."""
        count = ask_number(C.vinelift_infer_request_variables_size, self._handle)
        name = C.vinelift_infer_request_variable_name
        return [VariableState(self, k, ask_text(name, self._handle, k)) for k in range(count)]

    def reset_state(self) -> None:
        """Has all variables hold nothing: the next run starts with their initial values."""
        for variable in self.query_state():
            variable.reset()

    def __repr__(self) -> str:
        return f"<InferRequest: {self._compiled!r}>"


def is_cancelled(error: BaseException) -> bool:
    """Whether an exception says that a run was cancelled."""
    return isinstance(error, Error) and error.status == CANCELLED
