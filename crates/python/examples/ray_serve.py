"""Serves the digits model with Ray Serve: each replica holds a compiled model, and scores requests that come together in one run.

    pip install 'ray[serve]' vinelift
    python ray_serve.py ir-samples/models/digits/digits.xml --replicas 2 &
    curl -d '{"pixels": [0, 0, 5, …]}' http://localhost:8000

The answer is `{"digit": "seven", "confidence": 0.99}`. What is no picture of 64 pixels of 0 to 16 is answered with status 400.
A replica that dies is started again; what it was at work on is answered with status 500, and may be asked again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from ray import serve
from ray_batch import Scorer
from starlette.requests import Request
from starlette.responses import JSONResponse

PIXELS, LEVELS = 64, 17


class Digits:
    """A replica."""

    def __init__(self, engine: str, xml: bytes, weights: bytes) -> None:
        self.scorer = Scorer(engine, xml, weights, [], ["digit", "confidence"])

    async def __call__(self, request: Request) -> Any:
        # Before it joins others, which it must not spoil.
        try:
            pixels = np.array((await request.json())["pixels"])
        except (ValueError, KeyError, TypeError) as error:
            return refused(f"expected a JSON object with the key 'pixels': {error!r}")
        if pixels.shape != (PIXELS,) or pixels.dtype.kind != "i":
            return refused(f"expected {PIXELS} integers, found {pixels.dtype} of shape {list(pixels.shape)}")
        if pixels.min() < 0 or pixels.max() >= LEVELS:
            return refused(f"expected pixels of 0 to {LEVELS - 1}, found {pixels.min()} to {pixels.max()}")
        return await self.score(pixels.astype(np.int32))

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.001)
    async def score(self, pictures: list[np.ndarray]) -> list[dict[str, Any]]:
        found = self.scorer({"pixels": np.stack(pictures)})
        answers = zip(found["digit"].tolist(), found["confidence"].tolist())
        return [{"digit": digit, "confidence": confidence} for digit, confidence in answers]


def refused(why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=400)


def application(model: Path, replicas: int = 2, engine: str = "vinelift") -> serve.Application:
    """The deployment that `serve.run` starts."""
    contents = [model.read_bytes(), model.with_suffix(".bin").read_bytes()]
    options = {"num_replicas": replicas, "ray_actor_options": {"num_cpus": 1}}
    return serve.deployment(**options)(Digits).bind(engine, *contents)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the digits model with Ray Serve")
    parser.add_argument("model", type=Path)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--engine", choices=["vinelift", "openvino"], default="vinelift")
    options = parser.parse_args()
    serve.run(application(options.model, options.replicas, options.engine))
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
