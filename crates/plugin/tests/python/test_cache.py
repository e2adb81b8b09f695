"""Compiled models as bytes, and OpenVINO's cache of them."""

import io

import numpy as np
import openvino as ov
import pytest
from conftest import DEVICE, counter, dense, words

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7 - 0.4


def exported(core, model):
    return core.compile_model(model, DEVICE).export_model().getvalue()


def imported(core, blob):
    return core.import_model(blob, DEVICE)


def test_a_model_is_the_same_after_import(core):
    compiled = core.compile_model(dense(-1, 3), DEVICE)
    again = imported(core, exported(core, dense(-1, 3)))
    assert [port.names for port in again.inputs] == [port.names for port in compiled.inputs]
    assert again.output(0).partial_shape == compiled.output(0).partial_shape
    assert again.get_property("NETWORK_NAME") == "dense"
    np.testing.assert_array_equal(again({"x": X})["y"], compiled({"x": X})["y"])
    # An imported model can be exported.
    once_more = imported(core, again.export_model().getvalue())
    np.testing.assert_array_equal(once_more([X])[0], compiled([X])[0])


def test_states_and_strings(core):
    request = imported(core, exported(core, counter())).create_infer_request()
    request.infer([X[:, :2]])
    assert [state.name for state in request.query_state()] == ["held"]
    assert request.infer([X[:, :2]])[0].shape == (4, 2)
    assert imported(core, exported(core, words(core)))([np.array([2, 0])])[0].tolist() == ["zwölf", "a"]


def test_streams(core):
    stream = io.BytesIO()
    core.compile_model(dense(), DEVICE).export_model(stream)
    stream.seek(0)
    assert core.import_model(stream, DEVICE)([X])[0].shape == (2, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda blob: b"", "was not exported by"),
        (lambda blob: b"something else" * 9, "was not exported by"),
        (lambda blob: blob[:-100], "ends early"),
        (lambda blob: blob[:60], "ends early"),
        (lambda blob: blob[:24] + b"9" + blob[25:], "exported by version `9"),
        (lambda blob: blob.replace(b"x86_64", b"x86_65", 1), "exported by a machine of `x86_65"),
    ],
)
def test_other_bytes_are_refused(core, change, message):
    blob = exported(core, dense())
    with pytest.raises(RuntimeError, match=message):
        imported(core, change(blob))


def test_cache_directory(core, tmp_path):
    core.set_property({"CACHE_DIR": str(tmp_path / "cache")})
    path = tmp_path / "dense.xml"
    ov.save_model(dense(), path, compress_to_fp16=False)
    first = core.compile_model(path, DEVICE)
    (blob,) = (tmp_path / "cache").glob("*.blob")
    time = blob.stat().st_mtime_ns
    second = core.compile_model(path, DEVICE)
    np.testing.assert_array_equal(first([X])[0], second([X])[0])
    assert blob.stat().st_mtime_ns == time and len(list((tmp_path / "cache").iterdir())) == 1
    del second
    # A blob that was cut is made anew.
    whole = blob.read_bytes()
    blob.write_bytes(whole[: len(whole) // 2])
    np.testing.assert_array_equal(core.compile_model(path, DEVICE)([X])[0], first([X])[0])
