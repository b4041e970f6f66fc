"""Whatever a path leads to, reading it ends soon and takes little memory: FIFOs, devices, vast files, bombs."""

from __future__ import annotations

import ast
import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc.support import plain_files
from msc.support.files import read_source
from msc.support.hashing import file_digest
from msc.support.manifests import Manifest
from msc.weights.safetensors_file import TensorFile

PACKAGE = Path(msc.__file__).parent


def fifo(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


def vast(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def bomb(path: Path) -> None:
    """Which unpacks to two gigabytes, and says that it holds as many."""
    part = gzip.compress(bytes(1 << 24), 1)
    path.write_bytes(gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, 16, 1, 1)) + part * 128)


def boastful(path: Path) -> None:
    """Whose header says that there are 2^95 bytes."""
    path.write_bytes(gzip.compress(struct.pack(">4B3I", 0, 0, 8, 3, *[(1 << 32) - 1] * 3)))


KINDS = (fifo, device, folder, vast, bomb, boastful)


def mnist(path: Path) -> object:
    path.rename(path.with_name("train-images-idx3-ubyte.gz"))
    path.with_name("train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 0)))
    return next(ds.MnistDataset(path.parent, "train").create_tuple_iterator())


def cifar(path: Path) -> object:
    path.rename(path.with_name("test_batch.bin"))
    return next(ds.Cifar10Dataset(path.parent, "test").create_tuple_iterator())


def images(path: Path) -> object:
    (path.parent / "a").mkdir()
    path.rename(path.parent / "a" / "b.png")
    return next(ds.ImageFolderDataset(path.parent, decode=True).create_tuple_iterator())


READERS: dict[str, Callable[[Path], object]] = {
    "checkpoint": msc.load_checkpoint,
    "weights": TensorFile,
    "digest": file_digest,
    "MNIST": mnist,
    "CIFAR": cifar,
    "images": images,
    "records": lambda path: next(ds.TFRecordDataset(str(path)).create_tuple_iterator()),
    "schema": lambda path: ds.Schema(str(path)),
}


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.support.streams.PATIENCE", 0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_odd_files_are_refused(reader: str, kind: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    kind(path)
    if reader == "digest" and kind in (vast, bomb, boastful):
        return  # plain files, which are read piece by piece
    with pytest.raises((msc.MscError, OSError)) as caught:
        READERS[reader](path)
    if isinstance(caught.value, msc.MscError):
        code = caught.value.diagnostics[0].code
        assert code != "MSC0833"
        assert not code.startswith("MSC09")


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_is_none_is_refused(kind: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    kind(path)
    with pytest.raises(msc.MscError):
        read_source(path)
    assert not Manifest.of(tmp_path).files


def test_what_is_unpacked_ends_where_it_was_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"ab") + gzip.compress(b"cd"))
    with plain_files.unpacked(path) as (file, most):
        assert plain_files.first(file, 3) == b"abc"
        assert plain_files.first(file, 9) == b"d"
        assert most > 4
    path.write_bytes(b"plain")
    with plain_files.unpacked(path) as (file, most):
        assert plain_files.first(file, 9) == b"plain"
        assert most == 5


def test_limits_hold_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(100))
    assert len(plain_files.content(path, 100)) == 100
    with pytest.raises(OSError, match="at most 99"):
        plain_files.content(path, 99)


@pytest.mark.parametrize("rank", [0, 9, 32, 65, 255])
def test_ranks_of_idx_files(rank: int, tmp_path: Path) -> None:
    data = struct.pack(f">4B{rank}I", 0, 0, 8, rank, *[1] * rank) + b"\1"
    (tmp_path / "train-images-idx3-ubyte").write_bytes(data)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(data)
    with pytest.raises(msc.MscError, match="MSC0870"):
        next(ds.MnistDataset(tmp_path, "train").create_tuple_iterator())


OWN = set(
    "codegen/c/text/__init__.py driver/artifacts/artifact_cache.py runtime/artifact.py runtime/build.py "
    "runtime/budgets.py runtime/cache.py runtime/compiled_model.py runtime/interface.py runtime/machine.py "
    "runtime/program_text.py sim/sources.py "
    "support/file_memo.py support/files.py support/plain_files.py support/processors.py targets/catalogue.py "
    "targets/davinci.py targets/detection.py".split()
)
"""What reads files of msc's own: its texts, its cache, what it has just built; and the system's."""


def test_files_of_users_are_opened_by_one_reader() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in OWN
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and _reads(node)
    ]
    assert not found, "use msc.support.plain_files"


def _reads(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    modes = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
    return name in ("read_bytes", "read_text", "fromfile", "decompress") or (name == "open" and modes[-1:] == ["rb"])


def test_arrays_of_a_checkpoint_are_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    msc.save_checkpoint([{"name": "w", "data": msc.Tensor(np.ones(3, np.float32))}], path)
    loaded = msc.load_checkpoint(path)
    with path.open("r+b") as file:
        file.truncate(10)
    assert loaded["w"].asnumpy().tolist() == [1, 1, 1]
