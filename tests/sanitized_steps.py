"""`python -m tests.sanitized_steps [STEP ...] [--threads N]`: compiled steps of training under sanitizers.

A step of each kind of network of the training benchmark, in a small size, runs as a program of its own with
AddressSanitizer and UndefinedBehaviorSanitizer, in buffers of exactly its sizes. What it gives (the loss, weights and
momenta) has the bits of the program without sanitizers, and is near what the interpreter gives.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.training.engines import network, training_step
from benchmarks.training.networks import BasicResNet, BertLayer, Gpt, Mlp, Task
from msc import Tensor
from msc.dialects.arrays import Array
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.formats.capture import capture
from msc.formats.own_files import save
from msc.interp import evaluate
from msc.model_zoo import LeNet5, LstmClassifier
from msc.runtime.build import BuildOptions
from tests.unit.compiled.processes import process

SMALL: dict[str, Task] = {
    "mlp": Task(Mlp, (3, 784), 3, 10),
    "lenet5": Task(LeNet5, (3, 1, 32, 32), 3, 10),
    "resnet8": Task(lambda: BasicResNet((5, 8, 12), 1, pooled=False), (2, 3, 9, 9), 2, 10),
    "resnet18": Task(lambda: BasicResNet((4, 6, 8, 10), 2, pooled=True), (2, 3, 33, 33), 2, 10),
    "lstm": Task(lambda: LstmClassifier(50, 9, 7, 4), (3, 5), 3, 4, 50),
    "gpt": Task(lambda: Gpt(61, 24, 2, 3, 7), (2, 7), 14, 61, 61),
    "bert": Task(lambda: BertLayer(24, 3, 40), (2, 11, 24), 2, 4),
}
"""By the name of the network; sizes leave tails in vectors and tiles."""

_EXACT = ("-ffp-contract=off",)
"""Which products become fused multiply-adds depends on the level of optimisation, and the bits on that."""


def check(task: Task, folder: Path, threads: int = 1) -> None:
    """Raises AssertionError with what the sanitizers say, or with the result that differs."""
    step, data = training_step(network(task)), task.data()
    model = capture(step, tuple(map(Tensor, data)))
    path = folder / "step.mir"
    save(model, path)
    compilation = compile_model(str(path), CompileOptions(threads=threads))
    program, weights = generate_c(compilation), compilation.parameters()
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    inputs = [*data, *(values[tensor.name] for tensor in program.signature.inputs[len(data) :])]

    def outputs(options: BuildOptions) -> tuple[Array, ...]:
        place = Path(tempfile.mkdtemp(dir=folder))
        return process(program, weights, place, options).outputs(inputs)

    watched, plain = outputs(BuildOptions(sanitize=True, flags=_EXACT)), outputs(BuildOptions(flags=_EXACT))
    expected = evaluate(model.module, inputs, model.weights)
    for number, (a, b, right) in enumerate(zip(watched, plain, expected, strict=True)):
        assert a.tobytes() == b.tobytes(), f"result {number} has other bits under sanitizers"
        np.testing.assert_allclose(a, right, 1e-3, 1e-5, err_msg=f"result {number}")


def main() -> int:
    """Check steps; 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="*", default=list(SMALL))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for name in options.steps:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(SMALL[name], Path(folder), options.threads)
                print(f"{name:10} clean {time.perf_counter() - start:6.1f} s", flush=True)
            except AssertionError as error:
                failed += 1
                print(f"{name:10} {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
