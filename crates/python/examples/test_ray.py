"""The examples on a cluster of two workers on this machine, one of which dies."""

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import ray_batch
import ray_serve
from ray import serve

import vinelift

SAMPLE = Path(__file__).resolve().parents[3] / "ir-samples/models/digits"
MODEL = SAMPLE / "digits.xml"
ROWS, FILES = 100_000, 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[int]:
    """Two workers, which find the examples, and a port for requests."""
    runtime = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    try:
        ray.init("local", num_cpus=4, include_dashboard=False, runtime_env=runtime, log_to_driver=False)
    except Exception as error:
        pytest.skip(f"Ray starts no cluster here: {error}")
    with socket.socket() as any_free:
        any_free.bind(("127.0.0.1", 0))
        port = any_free.getsockname()[1]
    serve.start(http_options={"port": port})
    yield port
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def pixels() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 17, (ROWS, 64), np.int32)


class Mortal(ray_batch.Scorer):
    """A worker; the first one to come to its fifth batch is killed."""

    def __init__(self, folder: str, *rest) -> None:
        super().__init__(*rest)
        self.folder, self.batches = Path(folder), 0

    def __call__(self, batch):
        # Slow enough that there is work for all.
        time.sleep(0.05)
        self.batches += 1
        (self.folder / f"{os.getpid()}").touch()
        if self.batches == 5:
            try:
                (self.folder / "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def test_each_row_is_scored_once_although_a_worker_dies(cluster, pixels, tmp_path, monkeypatch):
    rows, out, workers = (tmp_path / name for name in ("rows", "out", "workers"))
    rows.mkdir()
    workers.mkdir()
    for k, ids in enumerate(np.array_split(np.arange(ROWS), FILES)):
        columns = {"id": pa.array(ids), "pixels": pa.FixedSizeListArray.from_arrays(pixels[ids].ravel(), 64)}
        pq.write_table(pa.table(columns), rows / f"{k}.parquet")

    class Scorer(Mortal):
        def __init__(self, *rest) -> None:
            super().__init__(str(workers), *rest)

    data = ray.data.read_parquet(str(rows), override_num_blocks=FILES)
    scored = ray_batch.score(data, MODEL, ["id"], ["digit", "confidence"], scorer=Scorer)
    scored.write_parquet(str(out))

    assert (workers / "killed").exists()
    # The one that died, and at least one more.
    assert len(list(workers.glob("[0-9]*"))) >= 2
    found = pq.read_table(out).sort_by("id")
    np.testing.assert_array_equal(found["id"], np.arange(ROWS))
    compiled = vinelift.Core().compile_model(str(MODEL))
    expected = compiled({"pixels": pixels})
    assert found["digit"].to_pylist() == expected["digit"].ravel().tolist()
    np.testing.assert_array_equal(found["confidence"], expected["confidence"].ravel())


def ask(port: int, body: bytes):
    """The status and the answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_requests_are_answered(cluster):
    serve.run(ray_serve.application(MODEL))
    digits = np.load(SAMPLE / "ten_digits.npy").astype(np.int32).reshape(-1, 64)
    expected = vinelift.Core().compile_model(str(MODEL))({"pixels": digits})
    for pixels, digit, confidence in zip(digits, expected["digit"].ravel(), expected["confidence"].ravel()):
        status, answer = ask(cluster, json.dumps({"pixels": pixels.tolist()}).encode())
        assert (status, answer["digit"]) == (200, digit)
        assert answer["confidence"] == pytest.approx(float(confidence))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"?", "JSON"),
        (b"[]", "pixels"),
        (b'{"pixels": [1, 2]}', "[2]"),
        (json.dumps({"pixels": [17] * 64}).encode(), "17"),
        (json.dumps({"pixels": [0.5] * 64}).encode(), "float"),
    ],
)
def test_what_is_no_picture_is_refused(cluster, body, why):
    serve.run(ray_serve.application(MODEL))
    status, answer = ask(cluster, body)
    assert status == 400
    assert why in answer["error"]
