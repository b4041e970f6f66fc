"""Random networks on boards that emulators have, by the self-test of their bundle: the bytes of TFLM."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.tflite_graph import run_micro
from msc.backends.registry import find_backend
from msc.driver.compile import compile_read, generate_c
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.importers.tflite import import_bytes
from msc.runtime.bundle import Golden, write_bundle
from tests.random_quantised.machines import HOSTS
from tests.random_tflite.drawing import MAKERS, Draw
from tests.targets.elsewhere import compiled

BOARDS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "rv32imc")


def differences(name: str, seed: int, marches: Sequence[str], *, is_quantised: bool = True) -> Iterator[str]:
    """Where a network gives other bytes than TFLM, or reals other than sums in another order, or compilers warn."""
    draw = Draw(seed, is_quantised)
    data = draw.graph.bytes(MAKERS[name](draw))
    given = draw.given()
    wanted = run_micro(data, given)
    tolerances = [(1e-5, 2e-5) if array.dtype.kind == "f" else (0.0, 0.0) for array in wanted]
    for march in marches:
        options = CompileOptions(march=march, name="net")
        compilation = compile_read(LoadedModel.in_memory(import_bytes(data), find_backend("cpu")), options)
        with tempfile.TemporaryDirectory(prefix="msc-board-") as folder:
            golden = Golden(given, wanted, tolerances)
            bundle = write_bundle(generate_c(compilation), compilation.parameters(), golden, Path(folder) / "bundle")
            ran = subprocess.run(["make", "-C", bundle, "run"], capture_output=True, text=True, check=False)
            if "PASS: net" not in ran.stdout:
                yield f"{name} {seed} on {march}: {(ran.stdout + ran.stderr)[-600:]}"


def hosts(name: str, seed: int) -> Iterator[str]:
    """The same for processors with an operating system, in integers."""
    draw = Draw(seed, True)
    data = draw.graph.bytes(MAKERS[name](draw))
    given = draw.given()
    wanted = run_micro(data, given)
    names = [draw.graph.tensors[t].name for t in draw.graph.inputs]
    for march in ("generic", "neon"):
        if HOSTS[march].missing():
            continue
        model = LoadedModel.in_memory(import_bytes(data), find_backend("cpu"))
        with tempfile.TemporaryDirectory(prefix="msc-host-") as folder:
            made = compiled(model, CompileOptions(), HOSTS[march], (), Path(folder))
            found = made.results(**dict(zip(names, given, strict=True)))
        if any(a.tobytes() != b.tobytes() for a, b in zip(found, wanted, strict=True)):
            yield f"{name} {seed} on {march}: other bytes"
