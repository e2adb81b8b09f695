"""How long the layers of a model took."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from ._declarations import Profiles
from ._library import C, Handle, check


class Status(IntEnum):
    """Whether a layer was run."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    EXECUTED = 2


@dataclass(frozen=True)
class ProfilingInfo:
    """The time of a layer."""

    node_name: str
    node_type: str
    exec_type: str
    status: Status
    real_time: timedelta
    cpu_time: timedelta

    Status = Status


def profile(request: Handle) -> list[ProfilingInfo]:
    """The times of the layers in the last run of a request."""
    found = Profiles()
    check(C.ov_infer_request_get_profiling_info(request, ctypes.byref(found)))
    try:
        return [
            ProfilingInfo(
                each.node_name.decode(),
                each.node_type.decode(),
                each.exec_type.decode(),
                Status(each.status),
                timedelta(microseconds=each.real_time),
                timedelta(microseconds=each.cpu_time),
            )
            for each in found.infos[: found.size]
        ]
    finally:
        C.ov_profiling_info_list_free(ctypes.byref(found))
