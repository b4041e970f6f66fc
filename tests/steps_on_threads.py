"""`python -m tests.steps_on_threads [TASK ...] [--threads 2] [--steps 3]`: steps of training on one thread and several.

Each network of the training benchmark takes the same steps in a program of one thread and in one of several: losses,
weights and momenta have the same bits.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

import msc
from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import TASKS, Task
from msc import Tensor
from msc.dialects.arrays import Array


def taken(task: Task, threads: int, steps: int) -> dict[str, Array]:
    """The loss of each step, and every parameter and state after the last, by name."""
    step, data = training_step(network(task)), task.data()
    model = msc.compile(step, *map(Tensor, data), threads=threads, use_cache=False)
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = {t.name: np.array(values[t.name], order="C") for t in model.inputs[len(data) :]}
    losses = np.array([model(*data, *states.values()) for _ in range(steps)])
    return {"loss": losses, **states}


def differing(task: Task, threads: int, steps: int) -> list[str]:
    """What has other bits on several threads."""
    one, several = taken(task, 1, steps), taken(task, threads, steps)
    assert np.isfinite(one["loss"]).all()
    return [name for name, value in one.items() if value.tobytes() != several[name].tobytes()]


def main() -> int:
    """Compare steps; 1 if a bit differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)}; all by default")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.tasks) - TASKS.keys()
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(TASKS)}")
    failed = 0
    for name in options.tasks or TASKS:
        start = time.perf_counter()
        found = differing(TASKS[name], options.threads, options.steps)
        failed += bool(found)
        what = f"other bits: {', '.join(found)}" if found else "the same bits"
        print(f"{name:20} {what} {time.perf_counter() - start:6.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
