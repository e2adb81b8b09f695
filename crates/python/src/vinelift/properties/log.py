"""Properties of the log."""

from __future__ import annotations

from enum import Enum

from ._key import Key


class Level(Enum):
    """How much is logged."""

    NO = "LOG_NONE"
    ERR = "LOG_ERROR"
    WARNING = "LOG_WARNING"
    INFO = "LOG_INFO"
    DEBUG = "LOG_DEBUG"
    TRACE = "LOG_TRACE"


level = Key("LOG_LEVEL")
