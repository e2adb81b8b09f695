"""Several requests of one model that run one beside the other."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable, Iterator

from ._compiled import CompiledModel
from ._library import Error
from ._request import InferRequest


class AsyncInferQueue:
    """A pool of requests: :meth:`start_async` takes one that is idle, and waits for one if there is none. How many run at
    the same time is for the property ``NUM_STREAMS`` to say."""

    __slots__ = ("_requests", "_userdata", "_idle", "_change", "_errors", "_callback", "__weakref__")

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        if not isinstance(model, CompiledModel):
            raise TypeError(f"expected a CompiledModel, found {type(model).__name__}")
        count = int(jobs) or int(model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS"))
        if count < 1:
            raise ValueError(f"a queue needs a request at least, found {jobs}")
        self._requests = [model.create_infer_request() for _ in range(count)]
        self._userdata: list[Any] = [None] * count
        self._idle = deque(range(count))
        self._change = threading.Condition()
        self._errors: deque[BaseException] = deque()
        self._callback: Callable[[InferRequest, Any], Any] | None = None

    def _hook(self, position: int) -> Callable[[Error | None], None]:
        def done(error: Error | None) -> None:
            try:
                if error is not None:
                    self._errors.append(error)
                elif self._callback is not None:
                    self._callback(self._requests[position], self._userdata[position])
            except BaseException as raised:  # It is raised again where the queue is used.
                self._errors.append(raised)
            finally:
                # The hook refers to the queue, and the queue to its requests: without this, the cycle would keep both alive.
                self._requests[position]._hook = None
                with self._change:
                    self._idle.append(position)
                    self._change.notify_all()

        return done

    def _raise_error(self) -> None:
        if self._errors:
            raise self._errors.popleft()

    def get_idle_request_id(self) -> int:
        """The position of a request that is idle; waits for one."""
        with self._change:
            while not self._idle:
                self._change.wait()
            position = self._idle[0]
        self._raise_error()
        return position

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Starts a run on a request that is idle; waits for one. `userdata` goes to the callback. What an earlier run has
        raised is raised here, or by :meth:`wait_all`."""
        self._raise_error()
        with self._change:
            while not self._idle:
                self._change.wait()
            position = self._idle.popleft()
        request = self._requests[position]
        try:
            # Its callback has been called; this waits until that has returned.
            _settle(request)
            self._userdata[position] = userdata
            request._hook = self._hook(position)
            request.start_async(inputs, None, share_inputs)
        except BaseException:
            request._hook = None
            with self._change:
                self._idle.append(position)
                self._change.notify_all()
            raise

    def is_ready(self) -> bool:
        """Whether there is a request that is idle."""
        return bool(self._idle)

    def wait_all(self) -> None:
        """Waits for all runs and callbacks, and raises what one of them has raised."""
        with self._change:
            while len(self._idle) < len(self._requests):
                self._change.wait()
        for request in self._requests:
            _settle(request)
        self._raise_error()

    def set_callback(self, callback: Callable[[InferRequest, Any], Any] | None) -> None:
        """Has a function called with the request and its userdata after each run that did not fail, on a thread of the
        library. What it raises, :meth:`wait_all` raises."""
        if callback is not None and not callable(callback):
            raise TypeError(f"expected a function, found {type(callback).__name__}")
        self._callback = callback

    @property
    def userdata(self) -> list[Any]:
        """The userdata of each request."""
        return list(self._userdata)

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, position: int) -> InferRequest:
        return self._requests[position]

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)


def _settle(request: InferRequest) -> None:
    """Waits until the library has done with a run. How that has ended is known already."""
    try:
        request.wait()
    except Error:
        pass
