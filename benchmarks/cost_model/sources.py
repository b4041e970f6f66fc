"""The networks whose kernels a corpus has: the benchmark's models, and its training steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.model import Model
from benchmarks.models import MODELS
from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import TASKS
from msc import Tensor
from msc.formats.capture import capture
from msc.formats.own_files import save


@dataclass(frozen=True)
class Source:
    """A network by name; `file` writes it, in a form that msc reads."""

    name: str
    file: Callable[[], Path]


@cache
def _folder() -> TemporaryDirectory[str]:
    """Where the steps of this process are written; it goes when the process goes."""
    return TemporaryDirectory(prefix="msc-steps-")


def _onnx(model: Model) -> Path:
    return model.onnx


def _step(task: str) -> Path:
    path = Path(_folder().name) / f"{task}.mir"
    step, (x, y) = training_step(network(TASKS[task])), TASKS[task].data()
    save(capture(step, [Tensor(x), Tensor(y)], any_layout=True), path)
    return path


SOURCES: dict[str, Source] = {
    **{name: Source(name, partial(_onnx, model)) for name, model in MODELS.items()},
    **{f"step-{task}": Source(f"step-{task}", partial(_step, task)) for task in TASKS},
}
"""By name."""
