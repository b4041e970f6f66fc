"""Data sets in files: what is read, and what is said of files that are damaged."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import msc
import msc.dataset as ds
from msc.dataset.runs import EpochRun
from msc.support.wire_format import bytes_field, masked_checksum, record, varint


def idx(array: Any) -> bytes:
    kind = {"uint8": 8, "int32": 12, "float32": 13}[array.dtype.name]
    head = bytes([0, 0, kind, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def mnist(folder: Path, count: int = 6, size: int = 5) -> Any:
    images = np.arange(count * size * size, dtype=np.uint8).reshape(count, size, size)
    (folder / "train-images-idx3-ubyte").write_bytes(idx(images))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.arange(count, dtype=np.uint8) % 4)))
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images[:2])))
    (folder / "t10k-labels-idx1-ubyte").write_bytes(idx(np.ones(2, np.uint8)))
    return images


def test_mnist(tmp_path: Path) -> None:
    images = mnist(tmp_path)
    data = ds.MnistDataset(str(tmp_path), "train", shuffle=False, num_parallel_workers=99)
    rows = list(data.create_dict_iterator(num_epochs=1, output_numpy=True))
    assert data.num_classes() == 4
    assert all((row["image"][..., 0] == image).all() for row, image in zip(rows, images, strict=True))
    assert [row["label"].item() for row in rows] == [0, 1, 2, 3, 0, 1]
    assert rows[0]["label"].dtype == np.uint32
    assert [ds.MnistDataset(tmp_path, usage).get_dataset_size() for usage in ("test", "all", None)] == [2, 8, 8]
    chosen = ds.MnistDataset(tmp_path, "train", sampler=ds.PKSampler(1))
    assert [row["label"].item() for row in chosen.create_dict_iterator(num_epochs=1)] == [0, 1, 2, 3]
    for path in tmp_path.glob("train-*"):
        path.unlink()
    assert ds.MnistDataset(tmp_path).get_dataset_size() == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is not an IDX file"),
        (b"\x1f\x8b\x08broken", "cannot be read"),
        (b"\0\0\x08\x03\0\0", "it ends within its header"),
        (idx(np.zeros((6, 5, 5), np.uint8))[:-1], "it has 149 bytes of elements, its header says 150"),
        (idx(np.zeros((6, 5), np.uint8)), "not images of uint8"),
        (idx(np.zeros((7, 5, 5), np.uint8)), "and there are 7 images"),
        (b"\0\0\x08\x04" + b"\xff" * 16, "its header says"),
    ],
)
def test_damaged_idx_files(tmp_path: Path, content: bytes, words: str) -> None:
    mnist(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(msc.MscError, match=words) as error:
        len(ds.MnistDataset(tmp_path, "train"))
    assert error.value.diagnostics[0].code == "MSC0870"


def test_folders_and_words_that_are_wrong(tmp_path: Path) -> None:
    for make, words in (
        (lambda: ds.MnistDataset(tmp_path / "none"), "does not exist"),
        (lambda: ds.MnistDataset(tmp_path), "there is no file"),
        (lambda: ds.MnistDataset(tmp_path, "tests"), "usage is 'tests'"),
        (lambda: ds.Cifar10Dataset(tmp_path), "there is no file"),
        (lambda: ds.ImageFolderDataset(tmp_path), "no folders with image files"),
        (lambda: ds.CSVDataset(tmp_path / "no.csv"), "there is no file"),
        (lambda: ds.CSVDataset(tmp_path), "is a folder"),
        (lambda: ds.TextFileDataset(str(tmp_path / "*.txt")), "names no file"),
    ):
        with pytest.raises(msc.MscError, match=words):
            make()


def test_cifar(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(0, 10, (4, 3073), dtype=np.uint8)
    (tmp_path / "test_batch.bin").write_bytes(records.tobytes())
    data = ds.Cifar10Dataset(tmp_path, "test", shuffle=False)
    image, label = next(data.rows(ds_run()))
    assert image.shape == (32, 32, 3)
    assert (image[..., 1].reshape(-1) == records[0, 1025:2049]).all()
    assert label == records[0, 0]
    wide = rng.integers(0, 10, (2, 3074), dtype=np.uint8)
    (tmp_path / "train.bin").write_bytes(wide.tobytes())
    _, fine, coarse = next(ds.Cifar100Dataset(tmp_path, "train", shuffle=False).rows(ds_run()))
    assert (fine, coarse) == (wide[0, 1], wide[0, 0])
    (tmp_path / "test_batch.bin").write_bytes(b"12")
    with pytest.raises(msc.MscError, match="no records of 3073"):
        len(ds.Cifar10Dataset(tmp_path, "test"))


def ds_run() -> Any:
    return importlib.import_module("msc.dataset.runs").EpochRun(0)


def test_image_folders(tmp_path: Path) -> None:
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((3, 4, 3), 50 * number, np.uint8)).save(tmp_path / name / "a.png")
    data = ds.ImageFolderDataset(tmp_path, shuffle=False, decode=True)
    assert data.get_class_indexing() == {"cat": 0, "dog": 1}
    assert [(int(image.max()), image.shape, int(label)) for image, label in data.rows(ds_run())] == [
        (0, (3, 4, 3), 0),
        (50, (3, 4, 3), 1),
    ]
    raw = ds.ImageFolderDataset(tmp_path, shuffle=False, class_indexing={"dog": 7})
    decoded = raw.map(ds.vision.Decode(), "image")
    assert [(int(i.max()), int(n)) for i, n in decoded.rows(ds_run())] == [(50, 7)]
    (tmp_path / "cat" / "a.png").write_bytes(b"no image")
    with pytest.raises(msc.MscError, match="cannot be decoded: it is no image of a known format") as error:
        list(data.rows(ds_run()))
    assert error.value.diagnostics[0].code == "MSC0870"


def test_without_pillow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(msc.MscError, match="pip install") as error:
        ds.vision.Decode()(np.zeros(4, np.uint8))
    assert error.value.diagnostics[0].code == "MSC0875"


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('n, x, s\n1,0.5,"a,b"\n\n,2,c\n', "utf-8")
    data = ds.CSVDataset(str(file), column_defaults=[7, 0.0, ""], shuffle=False)
    assert data.get_col_names() == ["n", "x", "s"]
    assert [tuple(v.item() for v in row) for row in data.rows(ds_run())] == [(1, 0.5, "a,b"), (7, 2.0, "c")]
    assert data.output_types()[:2] == [np.int32, np.float32]
    texts = ds.CSVDataset([file, file], column_names=["a", "b", "c"], shuffle=False)
    assert texts.get_dataset_size() == 6
    file.write_text("n,x\n1,z\n", "utf-8")
    for make, words in (
        (lambda: len(ds.CSVDataset(file, column_defaults=[0, 0.0])), "line 2: 'z' in column 'x' is not a number"),
        (lambda: len(ds.CSVDataset(file, column_names=["a"])), "line 1 has 2 fields, not 1"),
    ):
        with pytest.raises(msc.MscError, match=words):
            make()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'a,b\n"x\ny",2\n', [["x\ny", "2"]]),
        (b'"a\nb",c\r\n"x\r\ny",2\r\n', [["x\r\ny", "2"]]),
        (b'a,b\n"x""y",\n\n1,2', [['x"y', ""], ["1", "2"]]),
        (b"a,b\n1,2\r3,4\n", [["1", "2"], ["3", "4"]]),
        ("a,b\n1\u2028,2\x0b\n3\x85\x1c,\x0c\n".encode(), [["1\u2028", "2\x0b"], ["3\x85\x1c", "\x0c"]]),
        (b"a,b\n1\0z,2\n", [["1\0z", "2"]]),
        (b"a,b\n" + b"x" * 200_000 + b",2\n", [["x" * 200_000, "2"]]),
        (b"a,b\n1\0,2\n", "line 2: a text ends with a NUL character"),
        (b'a,b\n"x"y,2\n', "line 2: ',' expected after"),
        (b'a,b\n"x,2\n', "line 2: unexpected end"),
        (b"a,b\n1\n", "line 2 has 1 fields, not 2"),
    ],
)
def test_csv_is_split_as_mindspore_does(tmp_path: Path, content: bytes, expected: Any) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    limit = csv.field_size_limit()
    data = ds.CSVDataset(file, shuffle=False)
    if isinstance(expected, str):
        with pytest.raises(msc.MscError, match=expected) as error:
            len(data)
        assert error.value.diagnostics[0].code == "MSC0870"
    else:
        assert [[value.item() for value in row] for row in data.rows(ds_run())] == expected
    assert csv.field_size_limit() == limit


def test_text_is_split_at_line_feeds_only(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    for content, expected in (
        ("one\u2028still\x0bs\x0c\x1c\x85\nthree", ["one\u2028still\x0bs\x0c\x1c\x85", "three"]),
        ("a\r\nb\rc\n\n  \n", ["a\r", "b\rc", "  "]),
        ("a\0b", ["a\0b"]),
    ):
        file.write_text(content, "utf-8", newline="")
        data = ds.TextFileDataset(file, shuffle=False)
        assert [row[0].item() for row in data.rows(ds_run())] == expected
    file.write_text("a\nb\0\n", "utf-8")
    with pytest.raises(msc.MscError, match="line 2: a text ends with a NUL"):
        len(ds.TextFileDataset(file))


def test_text_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n\nthree\n", "utf-8")
    data = ds.TextFileDataset(str(tmp_path / "*.txt"), shuffle=False)
    words = data.map(ds.text.WhitespaceTokenizer(), "text")
    assert [row["text"].tolist() for row in words.create_dict_iterator(num_epochs=1)] == [["one", "two"], ["three"]]


def feature(kind: int, content: bytes) -> bytes:
    return bytes_field(kind, content)


def example(**features: bytes) -> bytes:
    entries = [bytes_field(1, bytes_field(1, n.encode()) + bytes_field(2, f)) for n, f in features.items()]
    return bytes_field(1, b"".join(entries))


def write_records(path: Path) -> list[bytes]:
    made = [
        example(
            label=feature(3, bytes_field(1, varint(k) + varint(-k))),
            x=feature(2, bytes_field(1, np.arange(6, dtype="<f4").tobytes())),
            name=feature(1, bytes_field(1, f"n{k}".encode())),
        )
        for k in range(3)
    ]
    path.write_bytes(b"".join(map(record, made)))
    return made


def test_the_checksum_is_that_of_castagnoli() -> None:
    unmasked = (masked_checksum(b"123456789") - 0xA282EAD8) & 0xFFFFFFFF
    assert (unmasked >> 17 | unmasked << 15) & 0xFFFFFFFF == 0xE3069283


def test_records(tmp_path: Path) -> None:
    file = tmp_path / "a.tfrecord"
    write_records(file)
    data = ds.TFRecordDataset(str(file), shuffle=False)
    assert data.get_col_names() == ["label", "name", "x"]
    assert [row[0].tolist() for row in data.rows(ds_run())] == [[0, 0], [1, -1], [2, -2]]
    assert next(data.rows(ds_run()))[1].tolist() == ["n0"]
    schema = ds.Schema()
    schema.add_column("x", "float32", [2, -1])
    schema.add_column("label", "int32")
    typed = ds.TFRecordDataset(file, schema, ["x", "label"], shuffle=False)
    assert typed.output_shapes() == [[2, 3], [2]]
    assert typed.output_types() == [np.float32, np.int32]
    (tmp_path / "s.json").write_text('{"columns": {"x": {"type": "float64", "shape": [6]}}}', "utf-8")
    assert ds.TFRecordDataset(file, str(tmp_path / "s.json")).output_types() == [np.float64]


def test_records_whose_types_change(tmp_path: Path) -> None:
    file = tmp_path / "a.tfrecord"
    kinds = {
        "Int64": feature(3, bytes_field(1, varint(7))),
        "Float32": feature(2, bytes_field(1, np.ones(2, "<f4").tobytes())),
        "text": feature(1, bytes_field(1, b"word")),
        "UInt8": feature(1, bytes_field(1, b"\xff\xfe")),
        "none": b"",
    }
    for first in list(kinds)[:-1]:
        for second, content in kinds.items():
            file.write_bytes(record(example(v=kinds[first])) + record(example(v=content)))
            rows = ds.TFRecordDataset(file, shuffle=False).rows(ds_run())
            value = next(rows)[0]
            if second in (first, "none"):
                assert next(rows)[0].dtype.kind == value.dtype.kind
                continue
            with pytest.raises(msc.MscError, match=f"'v' is {second} in record 1, and {first} in the first") as error:
                next(rows)
            assert error.value.diagnostics[0].code == "MSC0870"
    file.write_bytes(record(example(v=feature(1, bytes_field(1, b"ab\0")))))
    assert next(ds.TFRecordDataset(file).rows(ds_run()))[0].tolist() == [97, 98, 0]
    file.write_bytes(record(example(v=feature(3, bytes_field(1, varint(-1))))))
    schema = ds.Schema()
    schema.add_column("v", "uint32")
    with pytest.raises(msc.MscError, match="feature 'v' of record 0 is -1") as error:
        next(ds.TFRecordDataset(file, schema).rows(ds_run()))
    assert error.value.diagnostics[0].code == "MSC0884"


def test_damaged_records(tmp_path: Path) -> None:
    file = tmp_path / "a.tfrecord"
    write_records(file)
    whole = file.read_bytes()
    for place in (3, 9, 14, len(whole) - 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(msc.MscError, match="checksum") as error:
            list(ds.TFRecordDataset(file, shuffle=False).rows(ds_run()))
        assert error.value.diagnostics[0].code == "MSC0870"
    for content, words in ((whole[:-3], "longer than the file"), (whole[:5], "head of a record"), (b"", "no records")):
        file.write_bytes(content)
        with pytest.raises(msc.MscError, match=words):
            ds.TFRecordDataset(file)
    file.write_bytes(record(b"\xff\xff\xff"))
    with pytest.raises(msc.MscError, match=r"no tf\.train\.Example"):
        ds.TFRecordDataset(file)


@pytest.mark.parametrize(
    "module",
    [
        "msc.dataset.vision.c_transforms",
        "msc.dataset.vision.py_transforms",
        "msc.dataset.transforms.vision.c_transforms",
        "msc.dataset.transforms.vision",
    ],
)
def test_paths_of_early_releases(module: str) -> None:
    early: Any = importlib.import_module(module)
    assert early.Resize is ds.vision.Resize
    assert early.Inter.LINEAR == 1


def test_more_paths_of_early_releases() -> None:
    early: Any = importlib.import_module("msc.dataset.transforms.c_transforms")
    assert early.TypeCast is ds.transforms.TypeCast
    assert importlib.import_module("msc.dataset.vision.utils").Inter is ds.vision.Inter


def png(array: Any) -> Any:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "PNG")
    return np.frombuffer(buffer.getvalue(), np.uint8)


def test_decoding_of_bytes() -> None:
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert (ds.vision.Decode()(png(picture)) == picture).all()
    assert ds.vision.Decode(to_pil=True)(png(picture)).size == (4, 4)
    assert ds.vision.RandomCropDecodeResize(2)(png(picture)).shape == (2, 2, 3)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_floats_of_a_record_have_four_bytes(size: int, tmp_path: Path) -> None:
    feature = bytes_field(2, bytes_field(1, bytes(size)))
    entry = bytes_field(1, bytes_field(1, b"a") + bytes_field(2, feature))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(record(bytes_field(1, entry)))
    with pytest.raises(msc.MscError, match="MSC0870"):
        list(ds.TFRecordDataset(str(path)).create_tuple_iterator())


def test_parquet_and_arrow_files(tmp_path: Path) -> None:
    """Columns of numbers, strings, bytes and lists, in two files of both forms; what has no array is refused."""
    pa: Any = pytest.importorskip("pyarrow")
    pq: Any = pytest.importorskip("pyarrow.parquet")
    texts, data = ["a", "bb", "", "中", "e", "ff"], [b"x", b"yz", b"", b"1", b"2", b"3"]
    columns: dict[str, Any] = {
        "n": np.arange(6, dtype=np.int16),
        "t": texts,
        "b": data,
        "even": [[k, k + 1] for k in range(6)],
        "odd": [[1.5] * k for k in range(6)],
        "word": pa.array(["u", "v"] * 3).dictionary_encode(),
    }
    table = pa.table(columns)
    pq.write_table(table.slice(0, 4), tmp_path / "0.parquet", row_group_size=2)
    with pa.ipc.new_file(str(tmp_path / "1.arrow"), table.schema) as writer:
        writer.write_table(table.slice(4))
    files = [str(tmp_path / "0.parquet"), str(tmp_path / "1.arrow")]
    whole = ds.ParquetDataset(files, shuffle=False)
    assert whole.get_col_names() == list(columns)
    found = [[value.tolist() for value in row] for row in whole.rows(EpochRun(0))]
    assert found == [[k, texts[k], list(data[k]), [k, k + 1], [1.5] * k, "uv"[k % 2]] for k in range(6)]
    assert whole.output_types()[0] == np.int16
    (batch,) = ds.ParquetDataset(files, ["odd", "t"], shuffle=False).padded_batch(6).rows(EpochRun(0))
    assert (batch[0].shape, batch[1].tolist()) == ((6, 5), texts)
    mistakes: list[tuple[dict[str, Any], str]] = [({"n": [1, None]}, "no value in row 1"), ({"n": [[["a"]]]}, "holds")]
    for wrong, words in mistakes:
        pq.write_table(pa.table(wrong), tmp_path / "wrong.parquet")
        with pytest.raises(msc.MscError, match=words):
            list(ds.ParquetDataset(tmp_path / "wrong.parquet").rows(EpochRun(0)))
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:90])
    (tmp_path / "text.parquet").write_text("a,b")
    for name in ("cut", "text"):
        with pytest.raises(msc.MscError, match="MSC0870"):
            ds.ParquetDataset(tmp_path / f"{name}.parquet")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(msc.MscError, match="MSC0875"):
        ds.ParquetDataset(tmp_path / "a.parquet")
