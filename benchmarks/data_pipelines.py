"""`python -m benchmarks.data_pipelines [--mindspore PYTHON]`: rows a second of data pipelines, beside other engines.

One recipe after the other, engines in turn, several rounds: the best by wall time, and rows of all rounds by processor
time of the process with all its threads, on one processor. Peers: PyTorch's DataLoader with Pillow for each row,
torchvision's v2 on whole batches, and MindSpore's data engine if its Python is given. Rows are made and thrown away.
The first epoch of each engine, in which msc compiles, is shown by `--first`, and does not count.

The recipes `train-...` are whole epochs of training on all processors, fed by such a pipeline: `Model.train` of msc and
MindSpore, `torch.compile` with a DataLoader of two worker processes. They are compared by wall time.
"""

# PyTorch and MindSpore have few types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import numpy as np

RECIPES = ("mnist", "mnist-augmented", "cifar", "image-folder", "csv", "text", "audio")
TRAINED = {"train-lenet5": "mnist", "train-resnet8": "cifar"}
"""Recipes that train, and those of their data."""
ENGINES = ("msc", "torch", "torch-v2", "mindspore")
BATCH, COLUMNS, LONGEST = 32, 20, 64
RATE, WINDOW, BANDS = 16_000, 400, 64
MEAN, STD = [0.4914, 0.4822, 0.4465], [0.247, 0.243, 0.261]


def pictures(recipe: str, rows: int) -> tuple[Any, Any]:
    """Random pictures of the recipe's size, and labels."""
    draws = np.random.default_rng(0)
    shape = (28, 28, 1) if recipe.startswith("mnist") else (32, 32, 3)
    return draws.integers(0, 256, (rows, *shape), np.uint8), draws.integers(0, 10, rows).astype(np.int32)


def waves(rows: int) -> Any:
    """Noise of half a second."""
    return np.random.default_rng(0).uniform(-1, 1, (rows, RATE // 2)).astype(np.float32)


def source(recipe: str, rows: int) -> Path:
    """A folder with the data, made once: files of MNIST or CIFAR, JPEG files of 500x375 in two folders, a text file."""
    kind = "mnist" if recipe.startswith("mnist") else recipe
    root = Path(tempfile.gettempdir()) / f"msc-benchmark-{kind}-{rows}"
    if root.is_dir():
        return root
    root.mkdir()
    if kind == "image-folder":
        _write_jpegs(root, rows)
        return root
    if kind in ("csv", "text"):
        (root / f"data.{kind}").write_text("\n".join(_lines(kind, rows)) + "\n")
        return root
    images, labels = pictures(recipe, rows)
    if kind == "mnist":
        head = struct.pack(">IIII", 2051, *images.shape[:3])
        (root / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
        (root / "train-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, rows) + labels.astype("u1").tobytes())
    else:
        planes = images.transpose(0, 3, 1, 2).reshape(rows, -1)
        records = np.concatenate([labels.astype("u1")[:, None], planes], 1)
        (root / "data_batch_1.bin").write_bytes(records.tobytes())
    return root


def _lines(kind: str, rows: int) -> Iterator[str]:
    """A table of numbers with the names of its columns, or texts of 8 to 64 words."""
    draws = np.random.default_rng(0)
    if kind == "csv":
        yield ",".join(f"c{k}" for k in range(COLUMNS))
    for _ in range(rows):
        if kind == "csv":
            yield ",".join(f"{number:.6g}" for number in draws.normal(size=COLUMNS))
        else:
            yield " ".join(f"w{k}" for k in draws.integers(0, 2100, draws.integers(8, LONGEST + 1)))


def _write_jpegs(root: Path, rows: int) -> None:
    from PIL import Image

    draws = np.random.default_rng(0)
    for k in range(rows):
        path = root / f"class{k % 2}" / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(draws.integers(0, 256, (12, 16, 3), np.uint8))
        small.resize((500, 375), Image.Resampling.BICUBIC).save(path, quality=90)


def mindspore_like(ds: Any, vision: Any, transforms: Any, int32: Any, recipe: str, rows: int) -> Any:
    """The data set in the API that msc and MindSpore have in common."""
    if recipe == "audio":
        data = ds.NumpySlicesDataset({"wave": waves(rows)}, shuffle=True)
        return data.map(ds.audio.MelSpectrogram(RATE, WINDOW, n_mels=BANDS), "wave").batch(BATCH)
    path = str(source(recipe, rows) / f"data.{recipe}")
    if recipe == "csv":
        return ds.CSVDataset(path, column_defaults=[0.0] * COLUMNS, shuffle=True).batch(BATCH)
    if recipe == "text":
        words = ds.text.Vocab.from_list([f"w{k}" for k in range(2000)], ["<pad>", "<unk>"])
        steps = [ds.text.WhitespaceTokenizer(), ds.text.Lookup(words, "<unk>")]
        data = ds.TextFileDataset(path, shuffle=True).map(steps, "text")
        return data.padded_batch(BATCH, pad_info={"text": ([LONGEST], 0)})
    if recipe == "image-folder":
        data = ds.ImageFolderDataset(str(source(recipe, rows)), shuffle=True)
        steps = [vision.RandomCropDecodeResize(224), vision.RandomHorizontalFlip(), vision.HWC2CHW()]
    else:
        kind = ds.Cifar10Dataset if recipe == "cifar" else ds.MnistDataset
        data = kind(str(source(recipe, rows)), "train", shuffle=True)
        steps = [vision.RandomCrop(32, 4), vision.RandomHorizontalFlip()]
        if recipe == "cifar":
            steps += [vision.Rescale(1 / 255, 0.0), vision.Normalize(MEAN, STD), vision.HWC2CHW()]
        else:
            resize = [vision.Resize((32, 32))]
            steps = [*resize, *(steps if recipe == "mnist-augmented" else [])]
            steps += [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    return data.map(steps, "image").map(transforms.TypeCast(int32), "label").batch(BATCH, drop_remainder=True)


def of_msc(recipe: str, rows: int) -> Iterable[Any]:
    """The pipeline of msc, compiled with the first batch."""
    import msc
    import msc.dataset as ds
    from msc.dataset import transforms, vision

    ds.config.set_auto_offload(True)
    data = mindspore_like(ds, vision, transforms, msc.int32, TRAINED.get(recipe, recipe), rows)
    if recipe in TRAINED:
        return Epochs(rows, _epoch_like(msc, recipe, data, sinks=True))
    return data.create_tuple_iterator(num_epochs=-1, output_numpy=True)


def of_mindspore(recipe: str, rows: int) -> Iterable[Any]:
    """The pipeline of MindSpore."""
    import mindspore  # pyright: ignore[reportMissingImports]
    import mindspore.dataset as ds  # pyright: ignore[reportMissingImports]

    importlib.import_module("mindspore.dataset.audio")
    ds.config.set_num_parallel_workers(1)
    data = mindspore_like(ds, ds.vision, ds.transforms, mindspore.int32, TRAINED.get(recipe, recipe), rows)
    if recipe in TRAINED:
        return Epochs(rows, _epoch_like(mindspore, recipe, data, sinks=False))
    return data.create_tuple_iterator(num_epochs=-1, output_numpy=True)


class Epochs:
    """Epochs of training, read as epochs of rows are: all rows of each are one batch."""

    def __init__(self, rows: int, train: Callable[[], None]) -> None:
        self._rows, self._train = rows - rows % BATCH, train

    def __iter__(self) -> Iterator[Any]:
        self._train()
        yield (range(self._rows),)


def _epoch_like(ms: Any, recipe: str, data: Any, *, sinks: bool) -> Callable[[], None]:
    """An epoch of `Model.train`, of msc or MindSpore."""
    nn = ms.nn
    ms.set_context(mode=ms.GRAPH_MODE)

    class Block(nn.Cell):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            of_block = {"pad_mode": "pad", "padding": 1}
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, **of_block)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, **of_block)
            self.down = nn.Conv2d(inputs, outputs, 1, stride=stride, pad_mode="valid")
            self.norms = nn.CellList([nn.BatchNorm2d(outputs) for _ in range(3)])
            self.relu = nn.ReLU()

        def construct(self, x: Any) -> Any:
            y = self.relu(self.norms[0](self.conv1(x)))
            return self.relu(self.norms[1](self.conv2(y)) + self.norms[2](self.down(x)))

    convolution: dict[str, Any] = {"pad_mode": "valid", "has_bias": True}
    if recipe == "train-lenet5":
        layers = [nn.Conv2d(1, 6, 5, **convolution), nn.ReLU(), nn.MaxPool2d(2, 2)]
        layers += [nn.Conv2d(6, 16, 5, **convolution), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten()]
        layers += [nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)]
    else:
        first = nn.Conv2d(3, 16, 3, pad_mode="pad", padding=1)
        layers = [first, nn.BatchNorm2d(16), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
        layers += [nn.AvgPool2d(8), nn.Flatten(), nn.Dense(64, 10)]
    net = nn.SequentialCell(layers)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.01, 0.9))
    return lambda: model.train(1, data, dataset_sink_mode=sinks)


def _epoch_of_torch(torch: Any, recipe: str, loader: Any) -> Callable[[], None]:
    """An epoch of a loop in PyTorch."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.down = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(3)])

        def forward(self, x: Any) -> Any:
            y = self.norms[0](self.conv1(x)).relu()
            return (self.norms[1](self.conv2(y)) + self.norms[2](self.down(x))).relu()

    if recipe == "train-lenet5":
        layers = [nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    else:
        layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        layers += [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2), nn.AvgPool2d(8), nn.Flatten()]
        layers += [nn.Linear(64, 10)]
    net = nn.Sequential(*layers)
    optimiser = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, fused=True)

    def loss(x: Any, y: Any) -> Any:
        return nn.functional.cross_entropy(net(x), y)

    loss_of = torch.compile(loss)

    def train() -> None:
        for x, y in loader:
            optimiser.zero_grad()
            loss_of(x, y).backward()
            optimiser.step()

    return train


def of_torch(recipe: str, rows: int) -> Iterable[Any]:
    """PyTorch's DataLoader without worker processes, whose rows Pillow transforms."""
    from PIL import Image, ImageOps

    torch: Any = importlib.import_module("torch")

    if recipe in ("csv", "text"):
        return _lines_of_torch(torch, recipe, rows)
    if recipe == "audio":
        return _waves_of_torch(torch, rows)
    trained, recipe = recipe, TRAINED.get(recipe, recipe)
    images, labels = pictures(recipe, rows) if recipe != "image-folder" else (None, np.zeros(rows, np.int32))
    files = sorted(source(recipe, rows).glob("*/*.jpg"))
    mean, std = (np.array(v, np.float32)[:, None, None] for v in (MEAN, STD))

    def picture(k: int) -> Any:
        if images is None:
            whole = Image.open(files[k]).convert("RGB")
            side = int(np.sqrt(random.uniform(0.08, 1.0)) * min(whole.size))
            left, top = (random.randint(0, n - side) for n in whole.size)
            return whole.resize((224, 224), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
        found = Image.fromarray(images[k].squeeze())
        return found.resize((32, 32), Image.Resampling.BILINEAR) if recipe.startswith("mnist") else found

    def made(k: int) -> Any:
        image = picture(k)
        if recipe in ("mnist-augmented", "cifar"):
            left, top = random.randint(0, 8), random.randint(0, 8)
            image = ImageOps.expand(image, 4).crop((left, top, left + 32, top + 32))
        if recipe != "mnist" and random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        array = np.asarray(image)
        planes = torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy())
        if recipe == "image-folder":
            return planes
        floats = planes.to(torch.float32).div(255)
        return floats.sub(torch.from_numpy(mean)).div(torch.from_numpy(std)) if recipe == "cifar" else floats

    class Rows:
        def __len__(self) -> int:
            return rows

        def __getitem__(self, k: int) -> Any:
            return made(k), int(labels[k])

    if trained in TRAINED:
        loader = torch.utils.data.DataLoader(
            Rows(), BATCH, True, num_workers=2, drop_last=True, persistent_workers=True
        )
        return Epochs(rows, _epoch_of_torch(torch, trained, loader))
    return torch.utils.data.DataLoader(Rows(), BATCH, shuffle=True)


def _waves_of_torch(torch: Any, rows: int) -> Iterable[Any]:
    """Waves whose spectra PyTorch's Fourier transform makes, row by row."""
    from msc.dataset.audio import melscale_fbanks

    window = torch.hann_window(WINDOW)
    bands = torch.from_numpy(melscale_fbanks(WINDOW // 2 + 1, 0.0, RATE / 2, BANDS, RATE).T)

    class Rows:
        def __init__(self) -> None:
            self.waves = torch.from_numpy(waves(rows))

        def __len__(self) -> int:
            return rows

        def __getitem__(self, k: int) -> Any:
            spectrum = torch.stft(self.waves[k], WINDOW, WINDOW // 2, window=window, return_complex=True)
            return (bands @ spectrum.abs().square(),)

    return torch.utils.data.DataLoader(Rows(), BATCH, shuffle=True)


def _lines_of_torch(torch: Any, recipe: str, rows: int) -> Iterable[Any]:
    """Rows of a table in memory, or lines whose words are looked up and padded, as PyTorch's programs do."""
    path = source(recipe, rows) / f"data.{recipe}"
    if recipe == "csv":
        table = torch.from_numpy(np.loadtxt(path, np.float32, delimiter=",", skiprows=1))
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(table), BATCH, shuffle=True)
    numbers = {f"w{k}": k + 2 for k in range(2000)}

    def joined(texts: list[str]) -> Any:
        made = torch.zeros(len(texts), LONGEST, dtype=torch.int32)
        for row, text in zip(made, texts, strict=True):
            found = [numbers.get(word, 1) for word in text.split()]
            row[: len(found)] = torch.tensor(found, dtype=torch.int32)
        return (made,)

    lines = path.read_text().splitlines()
    return torch.utils.data.DataLoader(lines, BATCH, shuffle=True, collate_fn=joined)


def of_torchvision(recipe: str, rows: int) -> Iterable[Any]:
    """Torchvision's v2 on whole batches: one crop and one flip are drawn for all rows of a batch."""
    torch: Any = importlib.import_module("torch")
    v2: Any = importlib.import_module("torchvision.transforms.v2")

    resize, to_float = v2.Resize((32, 32), antialias=False), v2.ToDtype(torch.float32, scale=True)
    drawn: list[Any] = [v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()]
    of_recipe = {
        "mnist": [resize, to_float],
        "mnist-augmented": [resize, *drawn, to_float],
        "cifar": [*drawn, to_float, v2.Normalize(MEAN, STD)],
    }
    change = v2.Compose(of_recipe[recipe])
    images, labels = (torch.from_numpy(array) for array in pictures(recipe, rows))
    images = images.permute(0, 3, 1, 2)

    class Batches:
        def __iter__(self) -> Iterator[Any]:
            for group in torch.randperm(rows).split(BATCH):
                yield change(images[group]), labels[group]

    return Batches()


MAKERS: dict[str, Callable[[str, int], Iterable[Any]]] = {
    "msc": of_msc,
    "torch": of_torch,
    "torch-v2": of_torchvision,
    "mindspore": of_mindspore,
}


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(epoch: Iterable[Any], before: float) -> tuple[float, float, float]:
    """Rows a second of an epoch, by wall time and by what the process spent since `before`, and what it has spent.

    Engines read ahead between epochs: wall times of short epochs say little.
    """
    begun = time.perf_counter()
    count = sum(len(batch[0]) for batch in epoch)
    wall, now = time.perf_counter() - begun, _spent()
    return count / wall, count / max(now - before, 1e-9), now


class Engine:
    """An engine in a process of its own, which answers each line with the figures of an epoch."""

    def __init__(self, python: str, name: str, recipe: str, rows: int) -> None:
        command = [python, str(Path(__file__).resolve()), "--serve", name, recipe, str(rows)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.first = self.epoch()

    def epoch(self) -> tuple[float, float]:
        """Rows a second of another epoch. Raises RuntimeError if the engine ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("epoch\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("rows "):
                wall, spent = json.loads(line[5:])
                return wall, spent
        raise RuntimeError("the engine ended")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def serve(name: str, recipe: str, rows: int) -> None:
    """Answer lines."""
    if hasattr(os, "sched_setaffinity") and recipe not in TRAINED:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if name.startswith("torch"):
        importlib.import_module("torch").set_num_threads(1)
    pipeline = MAKERS[name](recipe, rows)
    before = _spent()
    for _ in sys.stdin:
        wall, spent, before = measured(pipeline, before)
        print("rows", json.dumps([wall, spent]), flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", choices=(*RECIPES, *TRAINED), action="append")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mindspore", metavar="PYTHON", help="an interpreter that has MindSpore")
    parser.add_argument("--first", action="store_true", help="show the first epoch too")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], options.serve[1], int(options.serve[2]))
        return
    ratios: list[float] = []
    for recipe in options.recipe or (*RECIPES, *TRAINED):
        rows = min(options.rows, {"image-folder": 768, "audio": 2048}.get(recipe, options.rows))
        best = _best_of(recipe, rows, options)
        for name, figures in best.items():
            print(f"{recipe:16} {name:10} {figures[0]:10,.0f} rows/s {figures[1]:10,.0f} rows/CPU s", flush=True)
        by = int(recipe not in TRAINED)
        peers = [figures[by] for name, figures in best.items() if name != "msc"]
        if peers and "msc" in best:
            ratios.append(best["msc"][by] / max(peers))
            print(f"{recipe:16} msc / best peer by {('wall', 'processor')[by]} time: {ratios[-1]:.2f}", flush=True)
    if ratios:
        print(f"geometric mean {math.prod(ratios) ** (1 / len(ratios)):.2f}")


def _best_of(recipe: str, rows: int, options: Any) -> dict[str, tuple[float, float]]:
    engines: dict[str, Engine] = {}
    for name in ENGINES:
        if (name == "mindspore" and not options.mindspore) or (name == "torch-v2" and recipe not in RECIPES[:3]):
            continue
        python = options.mindspore if name == "mindspore" else sys.executable
        try:
            engines[name] = Engine(python, name, recipe, rows)
        except RuntimeError as error:
            print(f"{recipe:16} {name:10} {error}")
            continue
        if options.first:
            print(f"{recipe:16} {name:10} first epoch {engines[name].first[0]:10,.0f} rows/s")
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for _ in range(options.rounds):
        for name, engine in engines.items():
            found[name].append(engine.epoch())
    for engine in engines.values():
        engine.close()
    # Who reads ahead does some of an epoch's work in another one: of processor time all rounds count.
    return {n: (max(w for w, _ in figures), harmonic_mean([s for _, s in figures])) for n, figures in found.items()}


if __name__ == "__main__":
    main()
