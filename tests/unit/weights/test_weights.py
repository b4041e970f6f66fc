"""Reading safetensors: what is right is mapped, and every way to be wrong has its code."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType

from msc.dialects.element_types import element_type
from msc.dialects.ms.structure import ParameterOp
from msc.support.diagnostics import MscError
from msc.weights.module_weights import Weights, weights_path
from msc.weights.safetensors_file import TensorFile
from tests.unit.graph_kernel.graphs import read


def parameter(name: str, dtype: str, *shape: int) -> ParameterOp:
    return ParameterOp(name, TensorType(element_type(dtype), shape))


def write(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_arrays_share_the_mapped_file(tmp_path: Path) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    safetensors: Any = importlib.import_module("safetensors.numpy")
    safetensors.save_file({"a": a, "flag": np.array([True, False]), "n": np.array(7)}, tmp_path / "w.safetensors")
    wanted = [parameter("a", "f32", 2, 3), parameter("flag", "i1", 2), parameter("n", "i64")]
    weights = Weights.open(tmp_path / "w.safetensors", wanted)
    np.testing.assert_array_equal(weights["a"], a)
    assert not weights["a"].flags.owndata
    assert not weights["a"].flags.writeable
    np.testing.assert_array_equal(weights["flag"], [True, False])
    assert weights["n"].shape == ()
    assert list(weights) == ["a", "flag", "n"]


def test_bfloat16(tmp_path: Path) -> None:
    data = np.array([1.5, -2], ml_dtypes.bfloat16)
    path = write(tmp_path / "w", {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, data.tobytes())
    np.testing.assert_array_equal(Weights.open(path, [parameter("a", "bf16", 2)])["a"], data)


def test_missing_file_names_a_near_one(tmp_path: Path) -> None:
    write(tmp_path / "lenet5.safetensors", {})
    with pytest.raises(MscError, match=r"(?s)MSC0301.*did you mean 'lenet5.safetensors'"):
        TensorFile(tmp_path / "lenet.safetensors")


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(MscError, match="MSC0301"):
        TensorFile(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MscError, match=r"MSC0301.*not a plain file"):
        TensorFile(tmp_path / "pipe")


ENTRY: dict[str, Any] = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": 1' + b"0" * 10_000 + b"}", "not JSON"),
        (b'{"a": {}, "a": {}}', "'a' stands twice"),
        ({"a": 1}, "entry of 'a'"),
        ({"a": ENTRY | {"shape": [2.0]}}, "entry of 'a'"),
        ({"a": ENTRY | {"shape": [True, 2]}}, "entry of 'a'"),
        ({"a": ENTRY | {"shape": [-1, -2]}}, "entry of 'a'"),
        ({"a": ENTRY | {"dtype": None}}, "entry of 'a'"),
        ({"a": ENTRY | {"data_offsets": [8, 0]}}, "bytes 8 to 0"),
        ({"a": ENTRY | {"data_offsets": [0, 1 << 70]}}, "bytes 0 to"),
        ({"a": ENTRY | {"shape": [3]}}, "has 8 bytes, not 12"),
        ({"a": ENTRY | {"shape": [1 << 62, 4]}}, "has 8 bytes, not"),
        ({"a": ENTRY, "b": ENTRY | {"data_offsets": [4, 12]}}, "'b' and 'a' overlap"),
    ],
)
def test_broken_headers(tmp_path: Path, header: Any, reason: str) -> None:
    path = write(tmp_path / "w.safetensors", header, bytes(12))
    with pytest.raises(MscError, match=f"MSC0302.*{reason}"):
        TensorFile(path)


@settings(deadline=None, max_examples=100)
@given(data=st.binary(max_size=64) | st.binary(max_size=40).map(lambda b: len(b).to_bytes(8, "little") + b))
def test_any_bytes_are_a_file_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "w"
    path.write_bytes(data)
    problem = None
    try:
        TensorFile(path)
    except MscError as error:
        problem = error.diagnostics[0].code
    assert problem in (None, "MSC0302")


@pytest.mark.parametrize("size", [0, 4, 20, 60])
def test_truncated_files(tmp_path: Path, size: int) -> None:
    whole = write(tmp_path / "whole", {"a": ENTRY}, bytes(8)).read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(whole[: min(size, len(whole) - 1)])
    with pytest.raises(MscError, match="MSC0302"):
        TensorFile(path)


def test_all_parameters_that_do_not_fit_are_reported_at_once(tmp_path: Path) -> None:
    header = {"conv1.weight": ENTRY, "b": ENTRY | {"data_offsets": [8, 16]}, "c": ENTRY | {"dtype": "F8_E4M3"}}
    header["c"]["data_offsets"] = [16, 18]
    path = write(tmp_path / "w", header, bytes(18))
    wanted = [parameter("conv.weight", "f32", 2), parameter("b", "f32", 1, 2), parameter("c", "f32", 2)]
    with pytest.raises(MscError) as caught:
        Weights.open(path, wanted)
    missing, shape, dtype = caught.value.diagnostics
    assert (missing.code, missing.help) == ("MSC0303", "did you mean 'conv1.weight'?")
    assert shape.code == "MSC0304"
    assert "declared tensor<1x2xf32>" in shape.message
    assert "has a tensor<2xf32>" in shape.message
    assert "has a tensor<2xF8_E4M3>" in dtype.message


@pytest.mark.parametrize("name", ["/etc/passwd", "../w.safetensors", "a/../../w", "", "a\0b", "C:\\w", "\\\\host\\w"])
def test_names_that_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(MscError, match="MSC0305"):
        weights_path(tmp_path, name)


def test_links_that_lead_out_of_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    write(tmp_path / "secret", {})
    (inside / "w").symlink_to(tmp_path / "secret")
    with pytest.raises(MscError, match="MSC0305"):
        weights_path(inside, "w")


def test_the_module_names_its_file(tmp_path: Path) -> None:
    write(tmp_path / "w.safetensors", {"a": ENTRY}, bytes(8))
    declared = "ms.parameter @a : tensor<2xf32>"
    named = read(f'builtin.module attributes {{ms.weights = "w.safetensors"}} {{ {declared} }}')
    np.testing.assert_array_equal(Weights.of_module(named, tmp_path)["a"], [0, 0])
    assert Weights.of_module(read("builtin.module { }"), tmp_path) == {}
    with pytest.raises(MscError, match="MSC0306"):
        Weights.of_module(read(f"builtin.module {{ {declared} }}"), tmp_path)
