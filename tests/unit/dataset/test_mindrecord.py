"""MindRecord: rows come back as they were written, in the bytes of MindSpore's, and damaged files are told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
import msc.dataset as ds
from msc.dataset.mindrecord import FileReader, FileWriter
from msc.dataset.record_values import MindRecordSchema, narrowed, packed, widened

SCHEMA = {
    "label": {"type": "int32"},
    "long": {"type": "int64"},
    "score": {"type": "float64"},
    "name": {"type": "string"},
    "data": {"type": "bytes"},
    "mask": {"type": "int64", "shape": [-1]},
    "box": {"type": "float32", "shape": [2, 2]},
}


def row(k: int) -> dict[str, Any]:
    draws = np.random.default_rng(k)
    mask = draws.integers(-(2**62), 2**62, k % 7 + 1) >> draws.integers(0, 62, k % 7 + 1)
    return {
        "label": k - 3,
        "long": int(mask[0]),
        "score": k / 7,
        "name": "é" * (k * 3),
        "data": bytes(range(k % 9)),
        "mask": mask,
        "box": np.full((2, 2), k, np.float32),
    }


def write(path: Path, count: int = 12, shards: int = 1) -> Path:
    writer = FileWriter(str(path), shards)
    writer.set_header_size(1 << 14)
    writer.set_page_size(1 << 15)
    writer.add_schema(SCHEMA, "rows of all types")
    writer.write_raw_data([row(k) for k in range(count)])
    writer.commit()
    return path if shards == 1 else path.with_name(path.name + "0")


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_come_back(shards: int, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.mindrecord", 12, shards)
    found = {int(r["label"]): r for r in ds.MindDataset(str(path), shuffle=False).create_dict_iterator(1, True)}
    assert sorted(found) == [k - 3 for k in range(12)]
    for k in range(12):
        expected, got = row(k), found[k - 3]
        assert bytes(got["data"]) == expected["data"]
        assert str(got["name"]) == expected["name"]
        for name in ("long", "score", "mask", "box"):
            assert np.array_equal(got[name], expected[name])
        assert (got["label"].dtype, got["mask"].dtype, got["box"].dtype) == (np.int32, np.int64, np.float32)
    reader = FileReader(str(path), columns=["name"])
    assert sorted(r["name"] for r in reader.get_next()) == sorted(row(k)["name"] for k in range(12))
    shuffled = ds.MindDataset(str(path), ["label"], num_shards=2, shard_id=1)
    assert shuffled.get_dataset_size() == 6
    padded = ds.MindDataset(str(path), ["label"], shuffle=False, padded_sample={"label": -99}, num_padded=2)
    assert [int(r[0]) for r in padded.create_tuple_iterator(num_epochs=1, output_numpy=True)][-2:] == [-99, -99]


def test_rows_over_several_pages(tmp_path: Path) -> None:
    writer = FileWriter(str(tmp_path / "large"))
    writer.set_page_size(1 << 15)
    writer.add_schema({"x": {"type": "float32", "shape": [-1]}})
    for k in range(9):
        writer.write_raw_data([{"x": np.full(1500, k, np.float32)}])
    with pytest.raises(msc.MscError, match="a row has 40,008 bytes"):
        writer.write_raw_data([{"x": np.zeros(10_000, np.float32)}])
    writer.commit()
    found = ds.MindDataset(str(tmp_path / "large"), shuffle=False).batch(9)
    assert next(found.create_dict_iterator(output_numpy=True))["x"][:, -1].tolist() == list(range(9))


def test_the_bytes_are_those_of_mindspore() -> None:
    """Rows that MindSpore 2.10 wrote, of which the bytes were copied."""
    integers = np.array([1, -1, 127, 128, -128, -129], np.int32)
    assert narrowed(integers) == bytes.fromhex("00000006 0110 01 ff 7f 8000 80 7fff")
    wide = np.array([300, 2**40, -(2**40), 5, 6])
    assert narrowed(wide) == bytes.fromhex(
        "00000005 7c00 2c01 0000000000010000 000000000 0ffffff 05 06".replace(" ", "")
    )
    schema = MindRecordSchema({"file": {"type": "string"}, "score": {"type": "float64"}, "data": {"type": "bytes"}})
    raw, blob = schema.encoded({"file": "n1.jpg", "score": 1 / 7, "data": b"\1\1\1"})
    assert raw == bytes.fromhex("82a466696c65a66e312e6a7067a573636f7265cb3fc2492492492492")
    assert blob == b"\1\1\1"
    two = MindRecordSchema({"a": {"type": "bytes"}, "b": {"type": "bytes"}})
    assert two.encoded({"a": b"\0\0", "b": b"xy0"})[1] == bytes.fromhex("0000000000000002 0000 0000000000000003 787930")


def test_integers_of_every_width() -> None:
    edges = [s * (2**b) + d for b in (0, 7, 8, 15, 16, 31, 32, 62) for s in (1, -1) for d in (-1, 0, 1)]
    values = np.array([*edges, -(2**63), 2**63 - 1])
    for count in range(len(values) + 1):
        assert np.array_equal(widened(narrowed(values[:count])), values[:count])
    assert packed(127) == b"\x7f"
    assert len(packed("x" * 300)) == 303


def test_damaged_files_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "rows")
    index = tmp_path / "rows.db"
    whole, rows = path.read_bytes(), index.read_bytes()

    def broken(words: str) -> None:
        with pytest.raises(msc.MscError, match=words) as error:
            list(ds.MindDataset(str(path), shuffle=False).create_tuple_iterator(num_epochs=1))
        assert error.value.diagnostics[0].code == "MSC1310"

    path.write_bytes(whole[:100])
    broken("does not begin with the header")
    path.write_bytes(whole[: 1 << 14])
    broken("names places outside of the file")
    damaged = bytearray(whole)
    first = whole.index(b"\x84\xa5label") - 8
    damaged[first] ^= 1
    path.write_bytes(bytes(damaged))
    broken("row 0 is damaged")
    path.write_bytes(whole)
    index.write_bytes(rows[:1000])
    broken("it is no index of MindRecord")
    index.write_bytes(rows)
    for change, words in (
        ("DELETE FROM INDEXES WHERE ROW_ID = 3", "it has 11 rows, the file 12"),
        ("UPDATE SHARD_NAME SET NAME = 'other'", "it is the index of 'other'"),
        ("UPDATE INDEXES SET PAGE_OFFSET_BLOB = 'x' WHERE ROW_ID = 1", "it holds what is no number"),
    ):
        with closing(sqlite3.connect(index)) as base:
            base.execute(change)
            base.commit()
        broken(words)
        index.write_bytes(rows)
    index.unlink()
    broken("there is no such index")


def test_what_a_writer_refuses(tmp_path: Path) -> None:
    path = write(tmp_path / "rows")
    with pytest.raises(msc.MscError, match=r"there is '.*rows' already"):
        FileWriter(str(path))
    writer = FileWriter(str(path), overwrite=True)
    with pytest.raises(msc.MscError, match="there is no schema yet"):
        writer.write_raw_data([])
    with pytest.raises(msc.MscError, match="field 'x' has type 'uint8'"):
        writer.add_schema({"x": {"type": "uint8"}})
    writer.add_schema({"x": {"type": "int32"}})
    for wrong in ({"x": 2**31}, {"x": "1"}, {"y": 1}, {}, {"x": True}):
        with pytest.raises(msc.MscError) as error:
            writer.write_raw_data([wrong])
        assert error.value.diagnostics[0].code == "MSC1311"
    with pytest.raises(msc.MscError, match="a power of two"):
        writer.set_page_size(1000)
