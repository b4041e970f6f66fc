"""How much memory ONNX Runtime's arena takes for a model, by its own log: `python -m benchmarks.arena FILE GROWTH`.

The arena holds activations, results and scratch; weights are reserved beside it and do not count.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np

Growth = Literal["doubled", "requested"]
"""What the arena takes when it is full: its default, powers of two from 1 MiB on, or just what is asked for."""

_TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}


def arena_bytes(model: Path, growth: Growth) -> int:
    """What the arena has taken after two calls on one thread, in a process of its own.

    Raises CalledProcessError if ONNX Runtime can't run the model.
    """
    command = [sys.executable, "-m", "benchmarks.arena", str(model), growth]
    folder = Path(__file__).parents[1]
    return logged_bytes(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stderr)


def logged_bytes(log: str) -> int:
    """The sum of the arena's extensions in a log."""
    return sum(map(int, re.findall(r"Extended allocation by (\d+) bytes", log)))


def run_logged(model: str, growth: Growth) -> None:
    """Two calls on zeros, as the second may plan anew what the first has found; the log goes to standard error."""
    runtime: Any = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(0)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if growth == "requested":
        _share_arena(runtime, options)
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    inputs = {value.name: np.zeros(value.shape, _TYPES[value.type]) for value in session.get_inputs()}
    for _ in range(2):
        session.run(None, inputs)


def _share_arena(runtime: Any, options: Any) -> None:
    """An arena that takes what is asked for; blocks planned ahead would come beside those of the first call."""
    place = runtime.OrtMemoryInfo("Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT)
    as_requested = {"max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": -1}
    runtime.create_and_register_allocator(place, runtime.OrtArenaCfg({**as_requested, "max_dead_bytes_per_chunk": -1}))
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.enable_mem_pattern = False


if __name__ == "__main__":
    run_logged(sys.argv[1], "requested" if sys.argv[2] == "requested" else "doubled")
