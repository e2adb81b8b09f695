#!/usr/bin/env python3
"""Measures networks with Vinelift and with OpenVINO, and writes networks.json.

    measure.py MODELS --program target/release/vinelift --openvino python3 --machine 'an AMD EPYC of Zen 5, two cores'

MODELS has a folder for each network: `model.xml` with its weights, and `meta.json`:

    {"source": "where it is from",
     "inputs": [{"name": "x", "file": "in_0.npy"}, ...],
     "outputs": [{"file": "out_0.npy"}, ...]}

`outputs` may be absent; where it is there, OpenVINO's outputs must have these shapes. Each figure is of a process of its own:
the median time of one inference, and the time to the first result, which includes reading and compiling the model. The two
programs take turns, and the least of all rounds counts. What a program cannot run is null in the file, with the reason beside
it. The file is written after each network, so that a measurement that was stopped keeps what it has.

`chart.py` draws the chart and prints the tables. Only --openvino needs packages: openvino and numpy.
"""

import argparse
import datetime
import json
import math
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# What limits oneDNN, and OpenVINO's own code with it; what limits Vinelift. Both use AVX-VNNI beside AVX2 where the machine has it.
WIDTHS = {"256": ("AVX2_VNNI", "256"), "512": ("DEFAULT", "widest")}

# Run by the Python that has OpenVINO: folder, threads, seconds.
OPENVINO = """
import json, sys, time
import numpy as np
import openvino as ov

folder, threads, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
meta = json.load(open(folder + "/meta.json"))
inputs = [(i["name"], np.load(folder + "/" + i["file"])) for i in meta["inputs"]]
start = time.perf_counter()
config = {
    "INFERENCE_NUM_THREADS": threads,
    "NUM_STREAMS": 1,
    "INFERENCE_PRECISION_HINT": "f32",
    # By default rows are rounded to 8 bits where weights have so many, on some processors.
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
}
request = ov.Core().compile_model(folder + "/model.xml", "CPU", config).create_infer_request()
for name, value in inputs:
    request.set_tensor(name, ov.Tensor(value))
request.infer()
first = time.perf_counter() - start
for number, output in enumerate(meta.get("outputs", [])):
    expected = np.load(folder + "/" + output["file"], mmap_mode="r").shape
    given = tuple(request.get_output_tensor(number).shape)
    if given != expected:
        sys.exit(f"output {number} has shape {list(given)} instead of {list(expected)}")
times, end = [], time.perf_counter() + seconds
while time.perf_counter() < end or len(times) < 5:
    start = time.perf_counter()
    request.infer()
    times.append(time.perf_counter() - start)
print(json.dumps([sorted(times)[len(times) // 2] * 1e3, first * 1e3]))
"""


class Failed(Exception):
    """A program that did not give its times, and why."""


def run(command, environment, timeout):
    """What a process of its own prints."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"it takes more than {timeout} seconds") from None
    if done.returncode < 0:
        raise Failed(f"it ends with {signal.Signals(-done.returncode).name}")
    if done.returncode > 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        # Without the advice that follows the first sentence.
        raise Failed(lines[-1].split(". ")[0] if lines else f"it ends with status {done.returncode}")
    return done.stdout


def openvino(arguments, folder, width, threads):
    environment = dict(os.environ, ONEDNN_MAX_CPU_ISA=WIDTHS[width][0])
    command = [arguments.openvino, "-c", OPENVINO, str(folder), threads, str(arguments.seconds)]
    return json.loads(run(command, environment, arguments.timeout).splitlines()[-1])


def vinelift(arguments, folder, width, threads):
    command = [arguments.program, "bench", str(folder / "model.xml"), "--json", "--threads", threads]
    command += ["--vectors", WIDTHS[width][1], "-t", str(arguments.seconds)]
    for port in json.loads((folder / "meta.json").read_text())["inputs"]:
        command += ["--input", f"{port['name']}={folder / port['file']}"]
    times = json.loads(run(command, dict(os.environ), arguments.timeout))
    return times["median_ms"], times["read_ms"] + times["compile_ms"] + times["first_infer_ms"]


def measure(arguments, folder, width, threads):
    """The figures of one network with one width of vectors and one number of threads."""
    programs = {"openvino": openvino, "vinelift": vinelift}
    best = {name: (math.inf, math.inf) for name in programs}
    errors = {}
    for turn in range(arguments.rounds):
        # The one that begins is the other in each round: what the machine does meanwhile is shared out.
        for name in sorted(programs, reverse=turn % 2 == 1):
            if name in errors:
                continue
            try:
                times = programs[name](arguments, folder, width, threads)
                best[name] = tuple(min(pair) for pair in zip(best[name], times))
            except Failed as why:
                errors[name] = str(why)
    figures = {}
    for name in programs:
        if name in errors:
            figures |= {f"{name}_ms": None, f"{name}_first_ms": None, f"{name}_error": errors[name]}
        else:
            figures |= {f"{name}_ms": round(best[name][0], 4), f"{name}_first_ms": round(best[name][1], 2)}
    return figures


def this_machine():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), name)
    return f"{name}, {cores} cores"


def has_512():
    cpuinfo = Path("/proc/cpuinfo")
    return not cpuinfo.exists() or " avx512f " in cpuinfo.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, help="a folder with a folder for each network")
    parser.add_argument("--program", default="target/release/vinelift", help="the program vinelift")
    parser.add_argument("--openvino", default="python3", help="a Python that has openvino and numpy")
    parser.add_argument("--machine", default=this_machine(), help="how the page names this machine")
    parser.add_argument("--vectors", nargs="+", choices=WIDTHS, default=list(WIDTHS), help="widths of vectors, in bits")
    parser.add_argument("--threads", nargs="+", default=["1", "2"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.7, help="for how long each process repeats the inference")
    parser.add_argument("--timeout", type=float, default=300, help="seconds after which a process is given up")
    parser.add_argument("--only", nargs="+", help="measures these networks anew, and keeps the others' figures")
    parser.add_argument("--output", type=Path, default=HERE / "networks.json")
    arguments = parser.parse_args()
    if "512" in arguments.vectors and not has_512():
        parser.error("this machine has no vectors of 512 bits: --vectors 256")

    networks = sorted(path.parent for path in arguments.models.glob("*/model.xml"))
    missing = set(arguments.only or []) - {folder.name for folder in networks}
    if missing or not networks:
        parser.error(f"there is no model.xml for {', '.join(sorted(missing)) or 'any network'} in {arguments.models}")
    version = "import openvino; print(openvino.__version__.split('-')[0])"
    about = {
        "machine": arguments.machine,
        "date": datetime.date.today().isoformat(),
        "vinelift": run([arguments.program, "--version"], dict(os.environ), 60).split()[-1],
        "openvino": run([arguments.openvino, "-c", version], dict(os.environ), 60).strip(),
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
    }

    kept = json.loads(arguments.output.read_text()) if arguments.output.exists() else {"measured": {}, "networks": {}}
    for width in arguments.vectors:
        before = kept["measured"].get(width)
        if arguments.only and before and before != about:
            parser.error(
                f"the other figures of {width} bits are not of this machine, day, versions and rounds: measure all"
            )
        kept["measured"][width] = about
        if not arguments.only:
            for network in kept["networks"].values():
                network["vectors"].pop(width, None)

    ours = []
    for folder in networks:
        if arguments.only and folder.name not in arguments.only:
            continue
        meta = json.loads((folder / "meta.json").read_text())
        network = kept["networks"].setdefault(folder.name, {"source": "", "vectors": {}})
        network["source"] = meta.get("source", "").split(" : ")[0]
        for width in arguments.vectors:
            for threads in arguments.threads:
                figures = measure(arguments, folder, width, threads)
                network["vectors"].setdefault(width, {})[threads] = figures
                if "vinelift_error" in figures:
                    ours.append(f"{folder.name}, {width} bits, {threads} threads: {figures['vinelift_error']}")
                print(folder.name, width, threads, json.dumps(figures), flush=True)
        # A network that was renamed or left out has no figures any more.
        save = dict(kept, networks={name: kept["networks"][name] for name in sorted(kept["networks"])})
        save["networks"] = {name: its for name, its in save["networks"].items() if its["vectors"]}
        beside = arguments.output.with_suffix(".new")
        beside.write_text(json.dumps(save, indent=1) + "\n")
        beside.replace(arguments.output)
    if ours:
        sys.exit("vinelift could not run:\n" + "\n".join(ours))


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"error: {why}")
