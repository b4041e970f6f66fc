"""Train LeNet-5 on handwritten digits with msc alone: from files of digits to a shared library.

    python samples/lenet5/train.py [--epochs N] [--folder FOLDER] [--rows N] [--mode graph|pynative]

writes, in FOLDER (`lenet5-trained` in the current one),

* `checkpoints/`: the newest checkpoints. Run again, the program goes on behind the newest one;
* `events.out.tfevents...`: loss and results for TensorBoard;
* `lenet5.safetensors`: the ten weight tensors that `lenet5.mir` names;
* `lenet5_net.mir`, `lenet5_net.onnx` and `lenet5_net.so`: the trained network, for one digit a call.

The digits are IDX files of 8x8 bytes, in `digits` beside this file. A digit is enlarged to 32x32 by linear
interpolation and divided by 255: f32 from 0, paper, to 1, ink. Nothing is selected on the held-out digits: the number
of epochs is fixed, and the last weights are those that count. All that is random follows from one seed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import msc
import msc.dataset as ds
from msc import Model, Tensor, nn
from msc.dataset import transforms, vision
from msc.train import CheckpointConfig, LossMonitor, ModelCheckpoint, SummaryCollector, TimeMonitor

HERE = Path(__file__).resolve().parent
SEED = 1998
BATCH = 32
PEAK = 2e-3
REQUIRED_ACCURACY = 0.98


class LeNet5(nn.Cell):
    """The network of `lenet5.mir`; parameters have the names of that file."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1 = nn.Dense(400, 120, activation="relu")
        self.fc2 = nn.Dense(120, 84, activation="relu")
        self.fc3 = nn.Dense(84, 10)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.flatten = nn.Flatten()

    def construct(self, image: Tensor) -> Tensor:
        """[N,1,32,32] f32 in [0,1] to [N,10] logits."""
        features = self.pool(self.relu(self.conv1(image)))
        features = self.pool(self.relu(self.conv2(features)))
        return self.fc3(self.fc2(self.fc1(self.flatten(features))))


def digits(usage: str, rows: int | None = None) -> ds.Dataset:
    """Steps 1 and 2: digits in batches; those to train on are turned, scaled and moved a little, anew in each epoch."""
    is_training = usage == "train"
    data: ds.Dataset = ds.MnistDataset(HERE / "digits", usage, num_samples=rows, shuffle=is_training)
    pixels: list[Any] = [vision.Resize((32, 32))]
    if is_training:
        pixels.append(vision.RandomAffine(12, (0.1, 0.1), (0.88, 1.12), resample=vision.Inter.LINEAR))
    pixels += [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    data = data.map(pixels, "image").map(transforms.TypeCast(msc.int32), "label")
    return data.batch(BATCH if is_training else 120, drop_remainder=is_training)


def one_cycle(steps: int) -> list[float]:
    """The learning rate of each step: up to the peak in three tenths of them, then down to almost 0, by cosines."""
    top = max(round(0.3 * steps), 1)
    up = PEAK * (0.52 - 0.48 * np.cos(np.pi * np.arange(top) / top))
    down = PEAK * (0.5 + 0.5 * np.cos(np.pi * np.arange(steps - top) / max(steps - top, 1)))
    return [float(rate) for rate in (*up, *down)]


def model_of(net: LeNet5, steps: int) -> Model:
    """Steps 3 to 6: network, loss and optimiser become a model."""
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), one_cycle(steps), weight_decay=1e-2)
    return Model(net, loss, optimizer, metrics={"accuracy"})


def export(net: LeNet5, folder: Path, image: Tensor) -> None:
    """Step 12: the network for others: a graph with weights, ONNX, and a library that needs no Python."""
    net.set_train(False)
    msc.save_checkpoint(net, folder / "lenet5.safetensors")
    for form in ("MIR", "ONNX", "SO"):
        print("wrote", msc.export(net, image, file_name=str(folder / "lenet5_net"), file_format=form, force=True))


def main() -> int:
    """The twelve steps; the exit code is 1 if fewer than 98 % of the held-out digits are right."""
    parser = argparse.ArgumentParser(description="Train LeNet-5 on handwritten digits with msc alone.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=Path("lenet5-trained"))
    parser.add_argument("--rows", type=int, help="train on the first rows only; then accuracy is not required")
    parser.add_argument("--mode", choices=("graph", "pynative"), default="graph")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    checkpoints = given.folder / "checkpoints"
    checkpoints.mkdir(exist_ok=True)

    msc.set_seed(SEED)
    msc.set_context(mode=msc.GRAPH_MODE if given.mode == "graph" else msc.PYNATIVE_MODE)
    to_train_on = digits("train", given.rows)
    steps = to_train_on.get_dataset_size()
    model = model_of(LeNet5(), given.epochs * steps)
    callbacks = [
        LossMonitor(steps),
        TimeMonitor(),
        ModelCheckpoint("lenet5", checkpoints, CheckpointConfig(steps, keep_checkpoint_max=2)),
        SummaryCollector(given.folder, collect_freq=steps),
    ]
    model.train(given.epochs, to_train_on, callbacks=callbacks, resume=checkpoints)  # step 7
    accuracy = model.eval(digits("test"))["accuracy"]  # step 8
    print(f"held-out digits: {accuracy:.2%} right")

    newest = max(checkpoints.glob("*.ckpt"), key=lambda file: file.stat().st_mtime_ns)  # step 9 wrote it
    net = LeNet5()
    msc.load_param_into_net(net, msc.load_checkpoint(newest))  # step 10
    images, labels = next(digits("test").create_tuple_iterator(num_epochs=1))
    predicted = Model(net).predict(images).asnumpy().argmax(1)  # step 11
    print("first held-out digits:", labels.asnumpy()[:10], "read as", predicted[:10])
    export(net, given.folder, Tensor(np.zeros((1, 1, 32, 32), np.float32)))
    return 0 if given.rows is not None or accuracy >= REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
