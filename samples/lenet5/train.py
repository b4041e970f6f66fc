"""Train LeNet-5 on handwritten digits and write the sample's two data files.

    python samples/lenet5/train.py

writes, beside this file,

* ``lenet5.safetensors``: the ten weight tensors that ``lenet5.mir`` names, f32;
* ``digits_test.safetensors``: the held-out digits, ``images`` u8 [360,1,32,32] and ``labels`` i64 [360].

Data: the UCI "Optical Recognition of Handwritten Digits" set as scikit-learn ships it (1797 digits of 8x8,
values 0..16). A digit becomes a network input in three documented steps, in ``to_images`` and ``to_input``:

1. bilinear interpolation from 8x8 to 32x32 with half-pixel centres;
2. ``round(value * 255 / 16)``, giving u8 0 (paper) .. 255 (ink);
3. ``/ 255``, giving f32 in [0, 1], which is what the network takes.

The split is stratified by class and seeded: 1437 digits train, 360 are held out. Nothing is selected on the held-out
digits: the number of epochs is fixed, and the last epoch's weights are what is written. Everything is seeded and runs
on one thread, so that one machine and one PyTorch version give the same files each time; another CPU or version may
round differently and give slightly different weights.

Needs: torch, scikit-learn, safetensors, numpy.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as functional
from safetensors.numpy import save_file
from sklearn import datasets, model_selection
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
SEED = 1998
HELD_OUT = 360
EPOCHS = 60
BATCH = 32
PEAK_LEARNING_RATE = 2e-3


class LeNet5(nn.Module):
    """The network of ``lenet5.mir``; parameter names are the file's names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, image: Tensor) -> Tensor:
        """[N,1,32,32] f32 in [0,1] to [N,10] logits."""
        features = functional.max_pool2d(functional.relu(self.conv1(image)), 2)
        features = functional.max_pool2d(functional.relu(self.conv2(features)), 2)
        hidden = functional.relu(self.fc1(torch.flatten(features, 1)))
        return self.fc3(functional.relu(self.fc2(hidden)))


def to_images(digits: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """[N,8,8] with values 0..16 to [N,1,32,32] u8: bilinear, half-pixel centres, then scaled to 0..255."""
    small = torch.from_numpy(digits).unsqueeze(1)
    large = functional.interpolate(small, size=(32, 32), mode="bilinear", align_corners=False)
    return (large * (255.0 / 16.0)).round().to(torch.uint8).numpy()


def to_input(images: npt.NDArray[np.uint8]) -> Tensor:
    """[N,1,32,32] u8 to f32 in [0,1]."""
    return torch.from_numpy(images).float() / 255.0


def load_split() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], Tensor, npt.NDArray[np.int64]]:
    """Training images, held-out images, training labels, held-out labels."""
    bunch = cast("dict[str, Any]", datasets.load_digits())
    images = to_images(np.asarray(bunch["images"], dtype=np.float64))
    labels = np.asarray(bunch["target"], dtype=np.int64)
    train, test = cast(
        "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]",
        model_selection.train_test_split(
            np.arange(len(labels)), test_size=HELD_OUT, random_state=SEED, stratify=labels
        ),
    )
    return images[train], images[test], torch.from_numpy(labels[train]), labels[test]


def augment(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Each image rotated up to 12 degrees, scaled by up to 12 %, and shifted by up to 3 pixels."""
    draw = torch.rand(4, len(batch), generator=generator) * 2 - 1
    angle, scale = draw[0] * math.radians(12), 1 + 0.12 * draw[1]
    cosine, sine = scale * torch.cos(angle), scale * torch.sin(angle)
    rows = [torch.stack([cosine, -sine, draw[2] * 6 / 32], 1), torch.stack([sine, cosine, draw[3] * 6 / 32], 1)]
    grid = functional.affine_grid(torch.stack(rows, 1), list(batch.shape), align_corners=False)
    return functional.grid_sample(batch, grid, align_corners=False)


def train(model: LeNet5, images: Tensor, labels: Tensor) -> None:
    """AdamW with a one-cycle rate and label smoothing for a fixed number of epochs."""
    generator = torch.Generator().manual_seed(SEED)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=1e-2)
    steps = math.ceil(len(images) / BATCH)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_LEARNING_RATE, epochs=EPOCHS, steps_per_epoch=steps)
    for epoch in range(EPOCHS):
        total = 0.0
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            logits = model(augment(images[chosen], generator))
            loss = functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rate.step()
            total += loss.item() * len(chosen)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  training loss {total / len(images):.4f}")


@torch.no_grad()
def accuracy(model: LeNet5, images: Tensor, labels: Tensor) -> float:
    """Share of images whose largest logit is their label."""
    return (model(images).argmax(1) == labels).float().mean().item()


def write(model: LeNet5, images: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64]) -> None:
    """Both files, with the data's source in their metadata."""
    source = "UCI Optical Recognition of Handwritten Digits (E. Alpaydin, C. Kaynak, 1998), CC BY 4.0, via scikit-learn"
    preparation = "8x8 values 0..16, bilinear to 32x32, half-pixel centres, round(v * 255 / 16); input is u8 / 255"
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    save_file(weights, HERE / "lenet5.safetensors", metadata={"trained_on": source})
    # One key only: safetensors writes several in no fixed order, and the file's bytes are to be reproducible.
    about = {"source": f"{source}; {preparation}"}
    save_file({"images": images, "labels": labels}, HERE / "digits_test.safetensors", metadata=about)


def main() -> None:
    """Train, report both accuracies, write both files."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train_images, test_images, train_labels, test_labels = load_split()
    model = LeNet5()
    train(model, to_input(train_images), train_labels)
    print(f"training digits {accuracy(model, to_input(train_images), train_labels):.2%}")
    print(f"held-out digits {accuracy(model, to_input(test_images), torch.from_numpy(test_labels)):.2%}")
    write(model, test_images, test_labels)


if __name__ == "__main__":
    main()
