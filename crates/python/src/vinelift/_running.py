"""Runs on threads of the library, and the one function of Python that these call.

There is one such function for all requests, which is never freed: what calls it may be the last that keeps a request. A
request is kept here while it runs. When the interpreter ends, runs are ended first: then no thread calls Python any more.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
from typing import TYPE_CHECKING

from ._declarations import Callback
from ._library import BUSY, C, check, failure

if TYPE_CHECKING:
    from ._request import InferRequest

_requests: dict[int, InferRequest] = {}
_tokens = itertools.count(1)


def _over(token: int) -> None:
    request = _requests.pop(token, None)
    if request is not None:
        request._done()


_done = Callback._fields_[0][1](_over)


def start(request: InferRequest) -> None:
    """Starts a run of a request."""
    token = request._token
    if token is None:
        token = request._token = next(_tokens)
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


def holds(token: int) -> bool:
    """Whether the run of a request is not over."""
    return token in _requests


@atexit.register
def _finish() -> None:
    while _requests:
        _token, request = _requests.popitem()
        request._hook = request._callback = None
        request.cancel()
        C.ov_infer_request_wait(request._handle)
