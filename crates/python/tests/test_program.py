"""The program that comes with the package, and what is shown of models."""

import subprocess
import sys

import pytest


def program(*arguments):
    return subprocess.run([sys.executable, "-m", "vinelift", *arguments], capture_output=True, text=True)


def test_it_is_the_program(digits, gather):
    told = program("info", digits)
    assert told.returncode == 0 and "pixels" in told.stdout and not told.stderr
    assert "scheduled" in program("dump", "--help").stdout
    assert program("info", "nothing.xml").returncode == 1
    assert program("nothing").returncode == 2


def test_dumps(ov, gather):
    compiled = ov.compile_model(gather, "CPU")
    text = compiled.dump("fused")
    assert text == program("dump", gather, "--stage", "fused").stdout and "for " in text
    assert text._repr_html_().startswith("<pre>") and "&lt;" in text._repr_html_()
    for stage in ("graph", "dot", "nest", "scheduled", "clif", "asm"):
        assert compiled.dump(stage)
    with pytest.raises(ov.Error):
        compiled.dump("nothing")


def test_dumps_of_bytes_and_shapes(ov, digits):
    xml, weights = open(digits, "rb").read(), open(digits.replace(".xml", ".bin"), "rb").read()
    compiled = ov.Core().compile_model(xml, "CPU", weights=weights)
    assert "hidden" in compiled.explain("hidden", shapes={"pixels": [1, 64]})
    model = ov.Core().read_model(digits)
    model.reshape([1, 64])
    text = ov.compile_model(model, "CPU").dump("fused", layer="vectors")
    assert text == program("dump", digits, "--shape", "pixels=1,64", "--stage", "fused", "--layer", "vectors").stdout
