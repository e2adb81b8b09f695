"""Scores rows with Ray Data, on as many machines as a Ray cluster has: each worker holds a compiled model.

    pip install 'ray[data]' vinelift
    python ray_batch.py MODEL.xml ROWS OUT --keep id --outputs digit,confidence --workers 2

ROWS is a Parquet file or a folder of them, with a column of each input of the model; OUT is a folder, which gets Parquet
files of the columns that are kept and of the outputs. `RAY_ADDRESS` names a cluster; without it, Ray starts one here.
If a worker or its machine dies, Ray starts another one and repeats what was not finished: each row is in OUT once.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import ray

Batch = dict[str, np.ndarray]


class Scorer:
    """A worker, which compiles the model once. `engine` is the package that does so: `vinelift`, or `openvino`, as both have
    the same names. The model is given by its contents: a worker may be on a machine that has not the file."""

    def __init__(self, engine: str, xml: bytes, weights: bytes, keep: list[str], outputs: list[str]) -> None:
        core = importlib.import_module(engine).Core()
        # Ray counts on one core for each worker.
        config = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(core.read_model(xml, weights), "CPU", config)
        self.inputs = [port.any_name for port in compiled.inputs]
        self.outputs = outputs or [port.any_name for port in compiled.outputs]
        self.keep, self.request = keep, compiled.create_infer_request()

    def __call__(self, batch: Batch) -> Batch:
        found = self.request.infer({name: dense(batch[name]) for name in self.inputs})
        scored = {name: batch[name] for name in self.keep}
        for name in self.outputs:
            # The request uses its memory again, but Ray may read a batch later.
            values = np.array(found[name])
            scored[name] = values.ravel() if values.size == len(values) else values
        return scored


def dense(column: np.ndarray) -> np.ndarray:
    """The rows as one array: Parquet's lists come as an array of arrays."""
    return np.stack(column) if column.dtype == object and isinstance(column[0], np.ndarray) else column


def score(
    rows: ray.data.Dataset,
    model: Path,
    keep: list[str],
    outputs: list[str],
    workers: int = 2,
    engine: str = "vinelift",
    scorer: type[Scorer] = Scorer,
) -> ray.data.Dataset:
    """The rows with outputs of the model in place of its inputs; they are computed when they are asked for."""
    contents = [model.read_bytes(), model.with_suffix(".bin").read_bytes()]
    return rows.map_batches(
        scorer,
        fn_constructor_args=[engine, *contents, keep, outputs],
        batch_size=1000,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Scores rows with Ray Data")
    parser.add_argument("model", type=Path)
    parser.add_argument("rows")
    parser.add_argument("out")
    parser.add_argument("--keep", default="", help="columns of ROWS that are kept, as id,name")
    parser.add_argument("--outputs", default="", help="outputs of the model, as digit,confidence; otherwise all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engine", choices=["vinelift", "openvino"], default="vinelift")
    options: Any = parser.parse_args()
    keep, outputs = ([name for name in text.split(",") if name] for text in (options.keep, options.outputs))
    # More blocks than workers, so that none waits for long for the others.
    rows = ray.data.read_parquet(options.rows, override_num_blocks=8 * options.workers)
    scored = score(rows, options.model, keep, outputs, options.workers, options.engine)
    scored.write_parquet(options.out, mode=ray.data.SaveMode.OVERWRITE)


if __name__ == "__main__":
    main()
