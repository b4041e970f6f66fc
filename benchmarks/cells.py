"""Cells of the zoo against the same networks from ONNX, and what a call costs beside the C function.

    python -m benchmarks.cells [NETWORK ...]

A Cell is compiled by `msc.compile(net, x)`; the ONNX file is what `msc.export` writes of it. Turns of both alternate:
a slow moment of the machine hits both. A row gives the medians, their ratio, and how long capture took.
"""

from __future__ import annotations

import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

import msc
from benchmarks.measure import Plan, interleaved
from benchmarks.peers import Runner
from msc import Tensor, nn
from msc.dialects.arrays import Array
from msc.formats.capture import capture
from msc.model_zoo import BertModel, LeNet5, LstmClassifier, MobileNetV2, UNet, resnet50


def _image(*shape: int) -> tuple[Array, ...]:
    return (np.random.default_rng(0).standard_normal(shape).astype(np.float32),)


def _tokens(count: int, *shape: int) -> tuple[Array, ...]:
    return tuple(np.ones(shape, np.int32) for _ in range(count))


NETWORKS: dict[str, tuple[Callable[[], nn.Cell], tuple[Array, ...]]] = {
    "lenet5": (LeNet5, _image(1, 1, 32, 32)),
    "resnet50": (resnet50, _image(1, 3, 224, 224)),
    "mobilenetv2": (MobileNetV2, _image(1, 3, 224, 224)),
    "bert-base": (BertModel, _tokens(3, 1, 128)),
    "lstm": (lambda: LstmClassifier(1000, 128, 128, 4), _tokens(1, 1, 64)),
    "unet": (lambda: UNet(3, 2, 16), _image(1, 3, 128, 128)),
}


@dataclass(frozen=True)
class Row:
    """Seconds: of capture, and of a call of the model from the Cell, from ONNX, and of the C function alone."""

    name: str
    capture: float
    cell: float
    onnx: float
    function: float

    def __str__(self) -> str:
        beside = (self.cell - self.function) * 1e6
        return (
            f"{self.name:12} capture {self.capture:6.3f} s   Cell {self.cell * 1e6:10.1f} us   "
            f"ONNX {self.onnx * 1e6:10.1f} us   ratio {self.cell / self.onnx:5.3f}   call beside C {beside:5.1f} us"
        )


def measured(name: str) -> Row:
    """The row of a network."""
    make, inputs = NETWORKS[name]
    net, examples = make(), [Tensor(array) for array in inputs]
    start = time.perf_counter()
    capture(net, examples)
    seconds = time.perf_counter() - start
    cell = msc.compile(net, *examples)
    with tempfile.TemporaryDirectory() as folder:
        path = msc.export(net, *examples, file_name=str(Path(folder) / "model"), file_format="ONNX")
        imported = msc.compile(path)
    results = cell.new_outputs(inputs)
    run = cell.bind(inputs, results)

    def function() -> Array:
        run()
        return results[0]

    runners: dict[str, Runner] = {"cell": lambda: cell(*inputs), "onnx": lambda: imported(*inputs), "c": function}
    times = {kind: median(found) for kind, found in interleaved(runners, Plan()).items()}
    return Row(name, seconds, times["cell"], times["onnx"], times["c"])


def main() -> None:
    """Print a row for each network that is named, or for all."""
    parser = ArgumentParser(prog="python -m benchmarks.cells", description=main.__doc__)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    for name in parser.parse_args().networks or NETWORKS:
        if name not in NETWORKS:
            parser.error(f"there is no network '{name}'; there are {', '.join(NETWORKS)}")
        print(measured(name), flush=True)


if __name__ == "__main__":
    main()
