"""Hints: what is wanted, and not how."""

from __future__ import annotations

from enum import Enum

from ._key import Key


class PerformanceMode(Enum):
    """The measure of speed that matters."""

    LATENCY = "LATENCY"
    THROUGHPUT = "THROUGHPUT"
    CUMULATIVE_THROUGHPUT = "CUMULATIVE_THROUGHPUT"


class ExecutionMode(Enum):
    """Whether accuracy or speed matters more; this library always computes in the precision of the model."""

    ACCURACY = "ACCURACY"
    PERFORMANCE = "PERFORMANCE"


class Priority(Enum):
    """How much a model matters among others."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    DEFAULT = "MEDIUM"


class SchedulingCoreType(Enum):
    """The processors to run on."""

    ANY_CORE = "ANY_CORE"
    PCORE_ONLY = "PCORE_ONLY"
    ECORE_ONLY = "ECORE_ONLY"


dynamic_quantization_group_size = Key("DYNAMIC_QUANTIZATION_GROUP_SIZE")
enable_cpu_pinning = Key("ENABLE_CPU_PINNING")
enable_hyper_threading = Key("ENABLE_HYPER_THREADING")
execution_mode = Key("EXECUTION_MODE_HINT")
inference_precision = Key("INFERENCE_PRECISION_HINT")
kv_cache_precision = Key("KV_CACHE_PRECISION")
model_priority = Key("MODEL_PRIORITY")
num_requests = Key("PERFORMANCE_HINT_NUM_REQUESTS")
performance_mode = Key("PERFORMANCE_HINT")
scheduling_core_type = Key("SCHEDULING_CORE_TYPE")
