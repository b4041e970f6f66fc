"""Data sets of images: MNIST's IDX files, CIFAR's batches, folders of image files."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from msc.dataset import arguments
from msc.dataset.arguments import refuse
from msc.dataset.sources import IndexedDataset
from msc.dataset.values import Array, Row
from msc.frontend.errors import ApiError, ApiValueError
from msc.frontend.settings import unused
from msc.support import plain_files

_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
"""The third byte of an IDX file -> its element type."""

_LARGEST_RANK = 8
_CIFAR_IMAGE = 3 * 32 * 32


def corrupt(path: Path, reason: str) -> ApiError:
    """The error of a file that cannot be read."""
    return ApiValueError("MSC0870", f"'{path}' cannot be read: {reason}")


@contextmanager
def unpacked(path: Path) -> Generator[tuple[IO[bytes], int]]:
    """A file, unpacked if it is gzip, and how many bytes it has at most. Raises MSC0870."""
    try:
        with plain_files.unpacked(path) as found:
            yield found
    except (OSError, EOFError, zlib.error) as error:
        raise corrupt(path, getattr(error, "strerror", None) or str(error)) from None


def file_bytes(path: Path) -> bytes:
    """The content of a file. Raises MSC0870."""
    try:
        return plain_files.content(path)
    except OSError as error:
        raise corrupt(path, error.strerror or str(error)) from None


def read_idx(path: Path) -> Array:
    """An IDX file, plain or gzip: two zeros, a type, a rank, the sizes, then the elements, all big-endian.

    Source: http://yann.lecun.com/exdb/mnist. Raises MSC0870.
    """
    with unpacked(path) as (file, most):
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_TYPES:
            raise corrupt(path, "it is not an IDX file, which begins with two zeros and the number of an element type")
        rank, dtype = head[3], np.dtype(_IDX_TYPES[head[2]])
        if not 1 <= rank <= _LARGEST_RANK:
            raise corrupt(path, f"its header says that its elements have {rank} axes; 1 to {_LARGEST_RANK} are read")
        sizes = file.read(4 * rank)
        if len(sizes) < 4 * rank:
            raise corrupt(path, "it ends within its header")
        shape = struct.unpack(f">{rank}I", sizes)
        wanted = math.prod(shape) * dtype.itemsize
        if wanted > most:
            raise corrupt(path, f"it has at most {most:,} bytes, its header says {wanted:,}")
        data = plain_files.first(file, wanted + 1)
    if len(data) != wanted:
        more = "more" if len(data) > wanted else f"{len(data):,}"
        raise corrupt(path, f"it has {more} bytes of elements, its header says {wanted:,}")
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("=")).reshape(shape)


class LabelledImages(IndexedDataset):
    """Base: images with labels, from files that are read at first use."""

    def _content(self) -> tuple[tuple[Array, ...], ...]:
        """The columns' values."""
        raise NotImplementedError

    @cached_property
    def _values(self) -> tuple[Any, ...]:
        return self._content()

    def total(self) -> int:
        return len(self._values[0])

    def arrays(self) -> Sequence[Array]:
        return self._values

    def row(self, index: int) -> Row:
        return tuple(np.asarray(values[index]) for values in self._values)

    def labels(self, column: str | None) -> Array:
        return self._values[arguments.known("class_column", (column or "label",), self.columns)[0]]


def _usage(value: Any, words: tuple[str, ...]) -> str:
    if value is None:
        return "all"
    if value not in words:
        refuse("usage", value, " or ".join(map(repr, words)))
    return str(value)


class MnistDataset(LabelledImages):
    """Images [height, width, 1] of UInt8 and labels of UInt32, from IDX files `train-images-idx3-ubyte` and the like.

    Files may end in .gz. `usage` is "train", "test" or "all", what is there of both. Images are of any size.
    Raises MSC0870.
    """

    def __init__(
        self,
        dataset_dir: str | Path,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        unused("MnistDataset", cache=cache)
        super().__init__(("image", "label"), sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
        self._folder = arguments.folder("dataset_dir", dataset_dir)
        self._usage = _usage(usage, ("train", "test", "all"))
        parts = [part for part, name in (("train", "train"), ("t10k", "test")) if self._usage in (name, "all")]
        there = [part for part in parts if self._found(f"{part}-images", "idx3")]
        self._pairs = [
            (self._file(f"{part}-images", "idx3"), self._file(f"{part}-labels", "idx1")) for part in there or parts
        ]

    def _file(self, name: str, kind: str) -> Path:
        path = self._found(name, kind)
        if path is not None:
            return path
        raise ApiValueError("MSC0870", f"there is no file '{self._folder / name}-{kind}-ubyte', with or without .gz")

    def _found(self, name: str, kind: str) -> Path | None:
        names = (f"{name}{separator}{kind}-ubyte{suffix}" for separator in ("-", ".") for suffix in ("", ".gz"))
        return next((path for path in map(self._folder.joinpath, names) if path.is_file()), None)

    def _content(self) -> tuple[Any, ...]:
        parts = [(read_idx(images), read_idx(labels)) for images, labels in self._pairs]
        for (images, labels), (image_file, label_file) in zip(parts, self._pairs, strict=True):
            if images.ndim != 3 or images.dtype != np.uint8:
                raise corrupt(image_file, f"it holds {images.dtype} of rank {images.ndim}, not images of uint8")
            if labels.shape != images.shape[:1]:
                raise corrupt(label_file, f"it has shape {list(labels.shape)}, and there are {len(images)} images")
        if len({images.shape[1:] for images, _ in parts}) > 1:
            raise corrupt(self._pairs[1][0], "its images have another size than those to train on")
        return np.concatenate([p[0] for p in parts])[..., None], np.concatenate([p[1] for p in parts]).astype(np.uint32)

    def num_classes(self) -> int | None:
        return len(np.unique(self._values[1]))


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST, in MNIST's files."""


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST, in MNIST's files."""


class _Cifar(LabelledImages):
    """CIFAR in its binary form: labels of a byte each, then 3 x 32 x 32 bytes."""

    COLUMNS: tuple[str, ...] = ()
    FILES: dict[str, tuple[str, ...]]

    def __init__(
        self,
        dataset_dir: str | Path,
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
    ) -> None:
        unused(type(self).__name__, cache=cache)
        super().__init__(self.COLUMNS, sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
        folder = arguments.folder("dataset_dir", dataset_dir)
        wanted = _usage(usage, ("train", "test", "all"))
        named = [n for part, files in self.FILES.items() if wanted in (part, "all") for n in files]
        self._files = [folder / name for name in named if (folder / name).is_file()]
        if not self._files:
            raise ApiValueError("MSC0870", f"dataset_dir: there is no file '{folder / named[0]}'")

    def _content(self) -> tuple[Any, ...]:
        labels = len(self.COLUMNS) - 1
        parts: list[Array] = []
        for path in self._files:
            data = np.frombuffer(file_bytes(path), np.uint8)
            if not data.size or data.size % (_CIFAR_IMAGE + labels):
                raise corrupt(path, f"its {data.size} bytes are no records of {_CIFAR_IMAGE + labels}")
            parts.append(data.reshape(-1, _CIFAR_IMAGE + labels))
        records = np.concatenate(parts)
        images = np.ascontiguousarray(records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        return images, *(records[:, k].astype(np.uint32) for k in reversed(range(labels)))


class Cifar10Dataset(_Cifar):
    """Images [32, 32, 3] of UInt8 and labels of UInt32, from `data_batch_1.bin` to 5 and `test_batch.bin`."""

    COLUMNS = ("image", "label")
    FILES = {"train": tuple(f"data_batch_{k}.bin" for k in range(1, 6)), "test": ("test_batch.bin",)}

    def num_classes(self) -> int | None:
        return 10


class Cifar100Dataset(_Cifar):
    """Images [32, 32, 3] of UInt8, and `fine_label` and `coarse_label` of UInt32, from `train.bin` and `test.bin`."""

    COLUMNS = ("image", "fine_label", "coarse_label")
    FILES = {"train": ("train.bin",), "test": ("test.bin",)}

    def num_classes(self) -> int | None:
        return 100


class ImageFolderDataset(IndexedDataset):
    """Image files in a folder for each class: `image` is the file's bytes, with `decode` [height, width, 3] of UInt8.

    `label` is Int32: classes are counted in the order of their names, unless `class_indexing` numbers them. Raises
    MSC0870, and MSC0875 without Pillow. `num_parallel_workers` threads read and decode; rows keep their order.
    """

    READS_FILES = True

    def __init__(
        self,
        dataset_dir: str | Path,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | None = None,
        sampler: Any = None,
        extensions: list[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: object = None,
        decrypt: object = None,
    ) -> None:
        unused("ImageFolderDataset", cache=cache, decrypt=decrypt)
        super().__init__(("image", "label"), sampler, shuffle, num_samples, num_shards, shard_id, num_parallel_workers)
        folder = arguments.folder("dataset_dir", dataset_dir)
        classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        self._classes = {n: k for k, n in enumerate(classes)} if class_indexing is None else dict(class_indexing)
        endings = tuple(extensions or (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".webp", ".tif", ".tiff"))
        self._files = [
            (path, number)
            for name, number in self._classes.items()
            for path in sorted((folder / name).rglob("*"))
            if path.name.lower().endswith(endings) and not path.is_dir()
        ]
        if not self._files:
            message = f"dataset_dir: '{folder}' has no folders with image files in them"
            advice = "a class is a folder: FOLDER/CLASS/NAME.png; `extensions` names other kinds of files"
            raise ApiValueError("MSC0870", message, help=advice)
        self._decodes = bool(decode)

    def total(self) -> int:
        return len(self._files)

    def row(self, index: int) -> Row:
        from msc.dataset.vision.decoding import decoded

        path, label = self._files[index]
        data = np.frombuffer(file_bytes(path), np.uint8)
        return decoded(data, str(path)) if self._decodes else data, np.asarray(label, np.int32)

    def labels(self, column: str | None) -> Array:
        return np.asarray([label for _, label in self._files])

    def num_classes(self) -> int | None:
        return len(self._classes)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self._classes)
