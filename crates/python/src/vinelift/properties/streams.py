"""How many runs go on at a time."""

from __future__ import annotations

from ._key import Key

num = Key("NUM_STREAMS")


class Num:
    """Values of ``NUM_STREAMS`` that leave the number to the engine."""

    AUTO = "AUTO"
    NUMA = "NUMA"
