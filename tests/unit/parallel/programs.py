"""Programs of several ranks, from text: run in the interpreter with all ranks, or by `mpirun`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array
from msc.dialects.ranks import run_ranks
from msc.driver.passes.registry import new_context
from msc.interp import evaluate
from msc.ir.reading import parse_module

ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def module_from(text: str) -> ModuleOp:
    module = parse_module(new_context(), text, "ranks.mir")
    module.verify()
    return module


def results(module: ModuleOp, inputs: Sequence[Sequence[Array]]) -> list[tuple[Array, ...]]:
    """What each rank computes of its inputs."""
    return run_ranks(len(inputs), lambda rank: evaluate(module, inputs[rank], {}))


needs_mpi = pytest.mark.skipif(
    shutil.which("mpirun") is None or shutil.which("mpicc") is None, reason="MPI is not installed: openmpi-bin"
)


def mpirun(
    count: int, command: Sequence[str | Path], folder: Path, seconds: int = 60
) -> subprocess.CompletedProcess[str]:
    """A command on ranks of this machine. Collectives that do not match would hang: it ends after some seconds."""
    words = ["mpirun", "--oversubscribe", "--timeout", str(seconds), "-n", str(count), *map(str, command)]
    return subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds + 30)


def random_inputs(count: int, *shapes: tuple[int, ...]) -> list[list[Array]]:
    """Other small integers in f32 on each rank, whose sums are exact."""
    draw = np.random.default_rng(0)
    return [[draw.integers(-8, 8, shape).astype(np.float32) for shape in shapes] for _ in range(count)]
