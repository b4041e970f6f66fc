"""A compiled step of training touches no memory that is not its own.

`python -m tests.sanitized_steps` checks steps of the networks of the benchmark.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.training.networks import Task
from msc import nn
from tests.sanitized_steps import check


def test_a_step_under_sanitizers_gives_the_same_bits(tmp_path: Path) -> None:
    cells = nn.Dense(7, 5), nn.BatchNorm1d(5)
    check(Task(lambda: nn.SequentialCell(*cells), (3, 7), 3, 5), tmp_path)
