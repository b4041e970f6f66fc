"""Checkpoints: what is written is read again, MindSpore's own are read, and hostile files give codes."""

from __future__ import annotations

import json
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import msc
from msc import Parameter, Tensor, nn
from msc.train.mindspore_checkpoint import read_tensors


class Net(nn.Cell):
    def __init__(self, outputs: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.fc = nn.Dense(4, outputs)


def varint(number: int) -> bytes:
    out = b""
    while True:
        number, low = number >> 7, number & 0x7F
        out += bytes([low | (0x80 if number else 0)])
        if not number:
            return out


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def tensor(dims: list[int], kind: str, data: bytes) -> bytes:
    sizes = b"".join(varint(1 << 3) + varint(n) for n in dims)
    return sizes + field(2, kind.encode()) + field(3, data)


def entry(tag: str, dims: list[int], kind: str, data: bytes) -> bytes:
    return field(1, field(1, tag.encode()) + field(2, tensor(dims, kind, data)))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    net, other = Net(), Net()
    file = tmp_path / "net.safetensors"
    msc.save_checkpoint(net, str(file), append_dict={"epoch_num": 3, "lr": 0.5})
    safetensors_numpy: Any = safetensors.numpy
    assert list(safetensors_numpy.load_file(file)) == ["conv.weight", "fc.weight", "fc.bias", "epoch_num", "lr"]
    loaded = msc.load_checkpoint(str(file))
    assert loaded["epoch_num"].item() == 3
    assert msc.load_param_into_net(other, loaded) == ([], ["epoch_num", "lr"])
    for a, b in zip(net.get_parameters(), other.get_parameters(), strict=True):
        np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def test_what_was_not_loaded_is_reported(tmp_path: Path) -> None:
    msc.save_checkpoint(Net(), tmp_path / "net.safetensors", choice_func=lambda name: not name.startswith("fc"))
    assert msc.load_param_into_net(Net(), msc.load_checkpoint(tmp_path / "net.safetensors")) == (
        ["fc.weight", "fc.bias"],
        [],
    )


@pytest.mark.parametrize("dtype", [msc.float16, msc.bfloat16, msc.float64, msc.int8, msc.uint16, msc.bool_])
def test_element_types(dtype: msc.DType, tmp_path: Path) -> None:
    value = Tensor([0, 1, 1], dtype)
    msc.save_checkpoint([{"name": "x", "data": value}], tmp_path / "x")
    msc.save_checkpoint([{"name": "x", "data": value}], tmp_path / "y", format="safetensors")
    for name in ("x.ckpt", "y.safetensors"):
        found = msc.load_checkpoint(tmp_path / name)["x"]
        assert found.dtype is dtype
        np.testing.assert_array_equal(found.asnumpy(), value.asnumpy())


def test_mindspore_checkpoints(tmp_path: Path) -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    half = w.tobytes()[:12], w.tobytes()[12:]
    file = tmp_path / "ms.ckpt"
    file.write_bytes(
        entry("fc.weight", [2, 3], "Float32", half[0])
        + entry("fc.weight", [2, 3], "Float32", half[1])
        + entry("step", [0], "Int64", struct.pack("<q", 7))
        + entry("name", [], "str", b"net")
    )
    loaded = msc.load_checkpoint(str(file))
    np.testing.assert_array_equal(loaded["fc.weight"].asnumpy(), w)
    assert loaded["step"].item() == 7
    assert isinstance(loaded["step"], Parameter)
    assert list(loaded) == ["fc.weight", "step"]


@pytest.mark.parametrize(
    "data",
    [
        b"hello, this is text",
        entry("w", [2, 3], "Float32", b"1234"),
        entry("w", [2**62, 2**62], "Float32", b""),
        entry("w", [1], "Complex64", b"12345678"),
        entry("w", [1], "Float32", b"1234")[:-1],
        field(1, b"\xff" * 11),
        field(1, field(1, b"\xff\xfe") + field(2, tensor([1], "Float32", b"1234"))),
        field(1, field(1, b"w")),
        b"\x0b",
        b"",
    ],
)
def test_hostile_checkpoints(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bad.ckpt"
    file.write_bytes(data)
    with pytest.raises(msc.MscError, match="MSC0830"):
        msc.load_checkpoint(file)


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    with suppress(msc.MscError):
        read_tensors(data, "x.ckpt")


def mismatch(outputs: int, **changed: Any) -> None:
    msc.load_param_into_net(Net(outputs), dict(Net().parameters_dict()) | changed)


@pytest.mark.parametrize(
    "expression",
    [
        lambda: mismatch(4),
        lambda: mismatch(3, **{"fc.bias": Tensor([1, 2, 3])}),
        lambda: mismatch(3, **{"fc.bias": np.zeros(3)}),
        lambda: msc.load_param_into_net(Net(), {"other": Tensor([1.0])}),
        lambda: msc.save_checkpoint({"x": "text"}, __file__ + ".never"),
        lambda: msc.save_checkpoint(3, __file__ + ".never"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_does_not_fit(expression: Any) -> None:
    with pytest.raises(msc.MscError, match="MSC0831"):
        expression()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(msc.MscError, match="MSC0830"):
        msc.load_checkpoint(tmp_path / "net.ckpt")


def test_summary() -> None:
    class Both(Net):
        def construct(self, x: Tensor) -> Tensor:
            return self.fc(self.conv(x))

    made = Both().summary(Tensor(np.ones((1, 1, 5, 4), np.float32)))
    assert [(row.name, row.shape, row.parameters, row.products) for row in made.rows] == [
        ("conv", "1x2x5x4", 18, 2 * 5 * 4 * 9),
        ("fc", "1x2x5x3", 15, 2 * 5 * 3 * 4),
    ]
    assert str(made).splitlines()[-2].split() == ["total", "33", "480"]
    assert msc.summary(Net()).parameters == 33


@pytest.mark.parametrize("bit", [0, 9, 77])
def test_the_checksum_of_a_checkpoint_is_checked(tmp_path: Path, bit: int) -> None:
    """MindSpore's `crc_check=True` writes `crc_num` and the CRC-32 of what stands before it."""
    data = entry("w", [2], "Float32", np.ones(2, np.float32).tobytes())
    path = tmp_path / "a.ckpt"
    path.write_bytes(data + b"crc_num" + zlib.crc32(data).to_bytes(10, "big"))
    assert msc.load_checkpoint(path)["w"].asnumpy().tolist() == [1, 1]
    changed = bytearray(path.read_bytes())
    changed[-1 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(changed)
    with pytest.raises(msc.MscError, match=r"MSC0830.*crc_num"):
        msc.load_checkpoint(path)


def safetensors_file(path: Path, header: dict[str, Any], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def spec(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ({"w": spec("F8_E4M3", [4], 0, 4)}, 4),
        ({"w": spec("nonsense\x1b", [4], 0, 4)}, 4),
        ({"w": spec("F32", [0, 1 << 62], 0, 0)}, 0),
        ({"w": spec("F32", [1 << 62, 1 << 62, 0], 0, 0)}, 0),
        ({"w": spec("F32", [1] * 65, 0, 4)}, 4),
        ({"w": spec("F32", [1], 4, 8)}, 8),
        ({"w": spec("F32", [1], 0, 4), "v": spec("F32", [1], 8, 12)}, 12),
        ({"w": spec("F32", [1], 0, 4)}, 5),
        ({"w": spec("F32", [1], 0, 8)}, 8),
        ({"w": spec("F32", [-1], 0, 4)}, 4),
        ({"w": spec("F32", [1], 4, 0)}, 4),
        ({"w": 3}, 4),
        ({}, 4),
    ],
)
def test_headers_that_lie(tmp_path: Path, header: dict[str, Any], size: int) -> None:
    with pytest.raises(msc.MscError) as caught:
        msc.load_checkpoint(safetensors_file(tmp_path / "a.ckpt", header, bytes(size)))
    assert caught.value.diagnostics[0].code in ("MSC0302", "MSC0830")


def test_what_is_not_wanted_may_be_of_any_type(tmp_path: Path) -> None:
    header = {"w": spec("F8_E4M3", [4], 0, 4), "v": spec("F32", [1], 4, 8)}
    path = safetensors_file(tmp_path / "a.ckpt", header, bytes(8))
    assert list(msc.load_checkpoint(path, filter_prefix="w")) == ["v"]


def test_a_file_of_no_bytes_is_called_empty(tmp_path: Path) -> None:
    file = tmp_path / "broken_off.ckpt"
    file.touch()
    with pytest.raises(ValueError, match=r"MSC0830.*empty"):
        msc.load_checkpoint(str(file))
