"""The keys of properties, for ``config``, :meth:`Core.set_property` and :meth:`Core.get_property`."""

from __future__ import annotations

from . import device, hint, log, streams
from ._key import Key

__all__ = ["Key", "device", "hint", "log", "streams"]

available_devices = Key("AVAILABLE_DEVICES")
cache_dir = Key("CACHE_DIR")
enable_mmap = Key("ENABLE_MMAP")
enable_profiling = Key("PERF_COUNT")
execution_devices = Key("EXECUTION_DEVICES")
inference_num_threads = Key("INFERENCE_NUM_THREADS")
model_name = Key("NETWORK_NAME")
num_streams = Key("NUM_STREAMS")
optimal_number_of_infer_requests = Key("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
range_for_async_infer_requests = Key("RANGE_FOR_ASYNC_INFER_REQUESTS")
range_for_streams = Key("RANGE_FOR_STREAMS")
supported_properties = Key("SUPPORTED_PROPERTIES")

# Those of this engine.
code_bytes = Key("VINELIFT_CODE_BYTES")
compilations = Key("VINELIFT_COMPILATIONS")
index_policy = Key("VINELIFT_INDEX_POLICY")
level = Key("VINELIFT_LEVEL")
packed_bytes = Key("VINELIFT_PACKED_BYTES")
specialization = Key("VINELIFT_SPECIALIZATION")
vectors = Key("VINELIFT_VECTORS")
