"""Make what a device needs to train LeNet-5's last layer: `python samples/on_device/step.py FOLDER [--threads N]`.

writes, in FOLDER,

* `step.mir` and `step.safetensors`: one step of training, which `msc compile step.mir -o step.c --name step` makes C;
* `digits.bin`: batches of held-out digits, each images f32 [20,1,32,32] and labels i32 [20];
* `losses.txt`: the loss of each step, as Python computes them with the same compiled step.

`main.c` beside this file is the program for the device; it needs none of msc, and no memory but its own arrays.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

import msc
from msc import Tensor, nn
from msc.dialects.arrays import Array

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lenet5"))

lenet5: Any = importlib.import_module("train")

BATCH, BATCHES, EPOCHS, RATE, MOMENTUM = 20, 6, 5, 0.05, 0.9


def training_step() -> nn.Cell:
    """The trained network with a new last layer, all zeros, which is all that the step updates."""
    net: nn.Cell = lenet5.LeNet5()
    msc.load_param_into_net(net, msc.load_checkpoint(HERE.parent / "lenet5" / "lenet5.safetensors"))
    for parameter in net.get_parameters():
        parameter.requires_grad = parameter.name.startswith("fc3.")
        if parameter.requires_grad:
            parameter.set_data(Tensor(np.zeros(parameter.shape, np.float32)))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), RATE, MOMENTUM)
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer).set_train()


def batches() -> list[tuple[Array, Array]]:
    """The held-out digits."""
    images, labels = next(lenet5.digits("test").create_tuple_iterator(num_epochs=1, output_numpy=True))
    shape = (BATCHES, BATCH)
    images = np.asarray(images, np.float32)[: BATCHES * BATCH].reshape(*shape, 1, 32, 32)
    return list(zip(images, np.asarray(labels, np.int32)[: BATCHES * BATCH].reshape(shape), strict=True))


def losses(step: nn.Cell, data: list[tuple[Array, Array]], threads: int) -> list[float]:
    """The loss of each step of the compiled model, from the beginning."""
    model = msc.compile(step, *map(Tensor, data[0]), threads=threads)
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = [np.array(values[t.name], order="C") for t in model.inputs[2:]]
    return [float(model.results(x, y, *states)[0]) for _ in range(EPOCHS) for x, y in data]


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description="Make what a device needs to train LeNet-5's last layer.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    step, data = training_step(), batches()
    trace = losses(step, data, given.threads)
    msc.export(step, *map(Tensor, data[0]), file_name=str(given.folder / "step"), file_format="MIR", force=True)
    (given.folder / "digits.bin").write_bytes(b"".join(x.tobytes() + y.tobytes() for x, y in data))
    (given.folder / "losses.txt").write_text("".join(f"{loss:.9g}\n" for loss in trace), "utf-8")
    print(f"wrote {given.folder}; next: msc compile step.mir -o step.c --name step")


if __name__ == "__main__":
    main()
