"""Random pipelines of the library's transforms: each must give the same rows in whatever way they are made.

Compiled and row by row; from a batch on and from the beginning; by one, two and four workers; and its shards, each with
its part, all rows once.
"""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import msc
import msc.dataset as ds
from msc.dataset import text, transforms, vision
from msc.dataset.runs import EpochRun
from msc.dataset.vision import Border, Inter
from msc.dataset.vision.decoding import pillow
from tests.random_pipelines.pipelines import Fault

BORDERS = (Border.CONSTANT, Border.EDGE, Border.REFLECT, Border.SYMMETRIC)
SMALLEST = 4


class TransformedPictures:
    """What a seed stands for: pictures, labels and transforms of both; `data` makes a data set of them."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.seed = seed
        count, channels = draw.randint(5, 20), draw.choice([None, 1, 3])
        self.shape = (draw.randint(6, 14), draw.randint(6, 14), *(() if channels is None else (channels,)))
        values = np.random.default_rng(seed)
        self.pictures = values.integers(0, 256, (count, *self.shape), np.uint8)
        self.labels = values.integers(0, 10, count).astype(draw.choice(["u4", "i4", "u1"]))
        self.batch, self.drops = draw.randint(1, 6), draw.random() < 0.3
        self.reads_objects = draw.random() < 0.3
        self.shuffles = not self.reads_objects and draw.random() < 0.5
        self.skipped = draw.choice([0, 0, draw.randint(1, 4)])
        self.maps = [list(self._transforms()) for _ in range(draw.randint(1, 2))]
        self.of_labels = draw.choice([transforms.TypeCast(msc.int32), transforms.OneHot(10, 0.1), None])
        self.projects = draw.random() < 0.3
        self.differ = self.reads_objects and len(self.shape) == 3 and draw.random() < 0.6
        self.in_files = self.differ and self.shape[2] == 3 and draw.random() < 0.6
        if self.in_files:
            decoded = [[vision.RandomCropDecodeResize(7, (0.2, 0.9))], [vision.Decode(), vision.Resize((8, 7))]]
            self.maps[0][:0] = draw.choice([*decoded, [vision.Decode()]])
        elif self.differ and draw.random() < 0.6:
            self.maps[0].insert(0, vision.Resize((6, 9)))

    def _transforms(self) -> Iterator[Any]:
        draw = self.draw
        channels = self.shape[2] if len(self.shape) == 3 else 1
        size = (draw.randint(SMALLEST, 16), draw.randint(SMALLEST, 16))
        padding, border = draw.randint(0, 3), draw.choice(BORDERS)
        mean = [draw.uniform(0, 1) for _ in range(channels)]
        choices: list[Callable[[], Any]] = [
            lambda: vision.Resize(size, draw.choice([Inter.LINEAR, Inter.LINEAR, Inter.NEAREST, Inter.AREA])),
            lambda: vision.RandomResizedCrop(size, interpolation=draw.choice([Inter.LINEAR, Inter.NEAREST])),
            lambda: vision.RandomCrop(SMALLEST, padding, fill_value=draw.choice([0, 9]), padding_mode=border),
            lambda: vision.RandomCrop(18, None, pad_if_needed=True, fill_value=3),
            lambda: vision.CenterCrop(size),
            lambda: vision.Crop((0, 1), (SMALLEST, SMALLEST - 1)),
            lambda: vision.Pad(padding, draw.choice([0, 200]), border),
            vision.HorizontalFlip,
            vision.VerticalFlip,
            vision.RandomHorizontalFlip,
            lambda: vision.RandomVerticalFlip(0.3),
            vision.Invert,
            lambda: vision.AdjustBrightness(1.3),
            lambda: vision.AdjustContrast(0.7),
        ]
        if len(self.shape) == 3:
            choices.append(lambda: vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR))
        for _ in range(draw.randint(0, 4)):
            yield draw.choice(choices)()
        if draw.random() < 0.6:
            yield vision.Rescale(1 / 255, draw.choice([0.0, -0.5]))
        if draw.random() < 0.4:
            yield vision.Normalize(mean, [0.3] * channels)
        if draw.random() < 0.6:
            yield vision.HWC2CHW() if draw.random() < 0.7 else transforms.TypeCast(msc.float16)

    def data(self, offload: bool, workers: int = 1, shards: tuple[int, int] | None = None) -> ds.Dataset:
        """The data set, read in one of the ways."""
        number, own = shards or (None, None)
        if self.reads_objects:
            rows = list(zip(self._unlike() if self.differ else self.pictures, self.labels, strict=True))
            data: Any = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False, num_shards=number, shard_id=own)
        else:
            columns = {"x": self.pictures, "y": self.labels}
            data = ds.NumpySlicesDataset(columns, shuffle=self.shuffles, num_shards=number, shard_id=own)
        data = data.skip(self.skipped) if self.skipped and shards is None else data
        for functions in self.maps:
            if functions:
                data = data.map(functions, "x", num_parallel_workers=workers, offload=offload)
        if self.of_labels is not None:
            data = data.map(self.of_labels, "y", num_parallel_workers=workers)
        if self.projects:
            data = data.project(["y", "x"]).rename("x", "z")
        return data.batch(self.batch, self.drops) if shards is None else data

    def _unlike(self) -> list[Any]:
        """The pictures cut to different sizes, or as files of them."""
        draw = random.Random(self.seed)
        cut = [np.array(picture[draw.randint(0, 2) :, : draw.randint(SMALLEST, 14)]) for picture in self.pictures]
        return [_file_of(picture, draw.choice(["JPEG", "PNG"])) for picture in cut] if self.in_files else cut

    def check(self) -> None:
        """Read it in all ways. Raises Fault."""
        expected = self.read(self.data(offload=False))
        words = f"seed {self.seed}: {self.shape}, {[[type(t).__name__ for t in m] for m in self.maps]}"
        for workers in (1, 2, 4):
            _compare(self.read(self.data(True, workers)), expected, f"{words}, {workers} workers")
        if any(isinstance(batch, str) for batch in expected):
            return
        start = self.draw.randint(0, max(len(expected), 1))
        _compare(self.read(self.data(True), start), expected[start:], f"{words}, from {start} on")

    def check_shards(self, shards: int) -> None:
        """Read the source in shards. Raises Fault if they are no partition, apart from what fills up the last."""
        alone = TransformedPictures(self.seed)
        alone.maps, alone.of_labels, alone.projects, alone.differ = [], None, False, False
        parts = [[row[0].tobytes() for row in alone.read(alone.data(True, 1, (shards, k)))] for k in range(shards)]
        wanted = sorted(picture.tobytes() for picture in self.pictures)
        size = -(-len(wanted) // shards)
        if {len(part) for part in parts} != {size} or {picture for part in parts for picture in part} != set(wanted):
            raise Fault(f"seed {self.seed}: {shards} shards are no partition")

    def read(self, data: ds.Dataset, start: int = 0) -> list[Any]:
        """The batches of an epoch; what a mistake stops, ends with its message."""
        return _read(data, self.seed, start)


WORDS = "a bb ccc Dd é 中文 _x [CLS] 12 -7 ... naïve ẞ".split()


class TransformedTexts:
    """What a seed stands for: texts, their transforms, and how they are batched."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.seed = seed
        self.texts = [" ".join(draw.choices(WORDS, k=draw.randint(0, 6))) for _ in range(draw.randint(3, 20))]
        words = text.Vocab.from_list(sorted({*WORDS, *"abcd ", "##b", "##c"}), ["<u>"])
        texts = [text.CaseFold(), text.NormalizeUTF8(), text.RegexReplace("[a-c]", "<c>", draw.random() < 0.5)]
        splits = [text.WhitespaceTokenizer(), text.UnicodeCharTokenizer(), text.RegexTokenizer(" ", " ")]
        splits += [text.BertTokenizer(words, lower_case=True), text.BasicTokenizer(), text.PythonTokenizer(str.split)]
        unknown = draw.choice(["<u>", "<u>", None])
        kinds = [msc.int32, msc.int8]
        ends = [text.Lookup(words, unknown, draw.choice(kinds)), text.ToNumber(msc.int64), text.CaseFold()]
        self.steps: list[Any] = [draw.choice(texts)] if draw.random() < 0.4 else []
        self.steps += draw.choices(splits, k=draw.choice([0, 1, 1, 1, 2]))
        self.steps += [text.Truncate(draw.randint(1, 4))] if draw.random() < 0.3 else []
        self.steps += draw.choices(ends, [6, 1, 1]) if draw.random() < 0.8 else []
        self.steps += [transforms.TypeCast(msc.float16)] if draw.random() < 0.2 else []
        pads = [transforms.PadEnd([draw.choice([3, 7, None])], draw.choice([None, None, 1]))]
        self.steps += pads if draw.random() < 0.3 else []
        size, drops = draw.randint(1, 6), draw.random() < 0.3
        pad = draw.choice([None, {"x": ([draw.randint(1, 8)], draw.choice([0, 9]))}, {"x": ([None], 2)}])
        is_padded = draw.random() < 0.7
        self.batched: Callable[[ds.Dataset], ds.Dataset] = lambda data: (
            data.padded_batch(size, drops, pad_info=pad) if is_padded else data.batch(size, drops)
        )

    def check(self) -> None:
        """Read it in blocks, by several workers, and resumed: as row by row. Raises Fault."""
        source = ds.GeneratorDataset([(np.asarray(line),) for line in self.texts], ["x"], shuffle=False)
        by_rows = source.map([_same, *self.steps], "x")
        expected = _read(self.batched(by_rows), self.seed)
        words = f"seed {self.seed}: {[type(step).__name__ for step in self.steps]}"
        for workers in (1, 2):
            data = source.map(self.steps, "x", num_parallel_workers=workers) if self.steps else source
            _compare(_read(self.batched(data), self.seed), expected, f"{words}, {workers} workers")
            start = self.draw.randint(0, len(expected))
            if not any(isinstance(batch, str) for batch in expected):
                _compare(_read(self.batched(data), self.seed, start), expected[start:], f"{words}, from {start} on")


def _same(line: Any) -> Any:
    return line


def _read(data: ds.Dataset, seed: int, start: int = 0) -> list[Any]:
    found: list[Any] = []
    try:
        found.extend(data.rows(EpochRun(seed, 1), start))
    except (msc.MscError, OverflowError) as error:
        found.append(str(error).splitlines()[0])
    return found


def _file_of(picture: Any, kind: str) -> Any:
    file = io.BytesIO()
    pillow().fromarray(picture).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


def _compare(found: list[Any], expected: list[Any], words: str) -> None:
    if len(found) != len(expected):
        raise Fault(f"{words}: {len(found)} batches, {len(expected)} row by row")
    for number, (batch, wanted) in enumerate(zip(found, expected, strict=True)):
        if isinstance(wanted, str) or isinstance(batch, str):
            if batch != wanted:
                raise Fault(f"{words}: batch {number}: {batch!r} in place of {wanted!r}")
            continue
        for value, right in zip(batch, wanted, strict=True):
            if value.dtype != right.dtype or value.shape != right.shape or value.tobytes() != right.tobytes():
                raise Fault(f"{words}: batch {number} is another one: {value.dtype} {value.shape}")
