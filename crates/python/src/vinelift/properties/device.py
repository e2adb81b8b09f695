"""Properties that describe a device."""

from __future__ import annotations

from ._key import Key

architecture = Key("DEVICE_ARCHITECTURE")
capabilities = Key("OPTIMIZATION_CAPABILITIES")
full_name = Key("FULL_DEVICE_NAME")
id = Key("DEVICE_ID")
priorities = Key("MULTI_DEVICE_PRIORITIES")
type = Key("DEVICE_TYPE")
