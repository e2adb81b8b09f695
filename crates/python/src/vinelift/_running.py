"""Runs on threads of the library, and the one function of Python that these call.

There is one such function for all requests, which is never freed: what calls it may be the last that keeps a request. A
request is kept here while it runs. When the interpreter ends, runs are ended first: then no thread calls Python any more.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import weakref
from typing import Protocol

from ._declarations import Callback
from ._library import BUSY, C, Error, Handle, check, failure


class Request(Protocol):
    """A request as far as it matters here. It has a number from its first run on."""

    _handle: Handle
    _token: int | None

    def _done(self) -> None:
        """Called on a thread of the library when a run is over."""

    def cancel(self) -> None:
        """Ends the run that there is, soon."""


_requests: dict[int, Request] = {}
# The requests whose callbacks are at work, by the number of the call.
_called: dict[int, Request] = {}
# Those that have had runs here, and are still there.
_known: weakref.WeakSet[Request] = weakref.WeakSet()
_numbers = itertools.count(1)
_is_ending = False


def _over(token: int) -> None:
    request = _requests.get(token)
    if request is None:
        return
    number = next(_numbers)
    # At no time is it in neither: who ends the interpreter looks at both.
    _called[number] = request
    del _requests[token]
    try:
        if not _is_ending:
            request._done()
    except Error:
        # At the end of the interpreter a callback may fail to start a further run; nobody needs to know.
        if not _is_ending:
            raise
    finally:
        del _called[number]


_done = Callback._fields_[0][1](_over)


def start(request: Request) -> None:
    """Starts a run of a request."""
    if _is_ending:
        raise Error("the interpreter is ending, no run can be started")
    token = request._token
    if token is None:
        token = request._token = next(_numbers)
        _known.add(request)
        callback = Callback(_done, token)
        try:
            check(C.ov_infer_request_set_callback(request._handle, ctypes.byref(callback)))
        except BaseException:
            request._token = None
            raise
    _requests[token] = request
    status = C.ov_infer_request_start_async(request._handle)
    if status:
        error = failure(status)
        if status != BUSY:
            _requests.pop(token, None)
        raise error


def holds(request: Request) -> bool:
    """Whether the run of a request is not over."""
    return request._token is not None and request._token in _requests


@atexit.register
def _finish() -> None:
    global _is_ending
    _is_ending = True
    # A callback that has begun before may start another run.
    while pending := [*_requests.values(), *_called.values()]:
        _wait_for_end(pending)
    # Where Python's part is over, a thread may be on its way out of the callback yet.
    _wait_for_end(list(_known))


def _wait_for_end(requests: list[Request]) -> None:
    for request in requests:
        request.cancel()
        C.ov_infer_request_wait(request._handle)


def _forget() -> None:
    """Runs go on in the process that was forked, and not in the new one."""
    _requests.clear()
    _called.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
