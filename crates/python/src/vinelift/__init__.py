"""Vinelift runs models of OpenVINO's IR, without OpenVINO.

The names are those of OpenVINO's Python package: for what is here, a script runs with ``import vinelift as ov``.
"""

from __future__ import annotations

from . import preprocess, properties
from ._compiled import CompiledModel
from ._core import Core, Version, compile_model, get_version, read_model
from ._device import DEVICE_LIBRARY, register
from ._dump import Text
from ._layout import Layout
from ._library import LIBRARY, Error
from ._model import Model
from ._ports import ConstOutput, Output
from ._profile import ProfilingInfo
from ._queue import AsyncInferQueue
from ._request import InferRequest, VariableState
from ._results import OVDict
from ._shapes import Dimension, PartialShape, Shape
from ._tensor import Tensor
from ._types import Type

__version__ = get_version().split("-")[1]

__all__ = [
    "AsyncInferQueue",
    "CompiledModel",
    "ConstOutput",
    "Core",
    "DEVICE_LIBRARY",
    "Dimension",
    "Error",
    "InferRequest",
    "LIBRARY",
    "Layout",
    "Model",
    "OVDict",
    "Output",
    "PartialShape",
    "ProfilingInfo",
    "Shape",
    "Tensor",
    "Text",
    "Type",
    "VariableState",
    "Version",
    "compile_model",
    "get_version",
    "preprocess",
    "properties",
    "read_model",
    "register",
]
