"""Checkpoints that are encrypted, have checksums, or are written in the background."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Model, Tensor, nn
from msc.dataset import NumpySlicesDataset
from msc.support.diagnostics import MscError
from msc.train.callback import CheckpointConfig, ModelCheckpoint
from msc.train.encryption import decrypted

KEY = bytes(range(16))
OF_MINDSPORE = {
    "AES-GCM": "d85e3a7f60aacd753eeb376967609e5ca0fc8b6f1d00000010000000"
    "9e1d17322e50695a4152e9b3420a6b94050000008058948f13",
    "AES-CBC": "d95e3a7f28000000100000009280c4cdf5d67dd4c956e0e5fed027b0100000003ae0af77982861dc21b8ec8a7a8f188c",
}
"""What MindSpore 2.10 makes of b"AAAAA" by this key."""


def net() -> nn.Cell:
    return nn.Dense(4, 3)


@pytest.mark.parametrize("mode", OF_MINDSPORE)
def test_what_mindspore_encrypts_is_read(mode: str) -> None:
    assert decrypted(bytes.fromhex(OF_MINDSPORE[mode]), KEY, mode, "x.ckpt") == b"AAAAA"


@pytest.mark.parametrize("mode", OF_MINDSPORE)
@pytest.mark.parametrize("size", [16, 24, 32])
def test_a_checkpoint_comes_back_by_its_key_alone(tmp_path: Path, mode: str, size: int) -> None:
    cell, file, key = net(), tmp_path / "x.ckpt", bytes(range(size))
    msc.save_checkpoint(cell, file, enc_key=key, enc_mode=mode, append_dict={"epoch": 3})
    weights = cell.trainable_params()[0].asnumpy()
    assert weights.tobytes() not in file.read_bytes()
    assert b"weight" not in file.read_bytes()
    found = msc.load_checkpoint(file, dec_key=key, dec_mode=mode)
    np.testing.assert_array_equal(found["weight"].asnumpy(), weights)
    assert int(found["epoch"]) == 3
    other = next(m for m in OF_MINDSPORE if m != mode)
    for wrong in ({}, {"dec_key": bytes(size), "dec_mode": mode}, {"dec_key": key, "dec_mode": other}):
        with pytest.raises(MscError, match=rf"MSC0888.*{re.escape(str(file))}"):
            msc.load_checkpoint(file, **wrong)  # pyright: ignore[reportArgumentType]


def test_every_change_of_an_authenticated_file_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "x.ckpt"
    msc.save_checkpoint({"a": Tensor(np.arange(5, dtype=np.float32))}, file, enc_key=KEY)
    data = file.read_bytes()
    not_taken = range(28 + 12, 28 + 16)  # of the initial vector, whose first 12 bytes GCM takes
    for place in sorted(set(range(len(data))) - set(not_taken)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(MscError, match="MSC0888"):
            msc.load_checkpoint(file, dec_key=KEY)
    for size in range(9, len(data)):
        file.write_bytes(data[:size])
        with pytest.raises(MscError, match="MSC0888"):
            msc.load_checkpoint(file, dec_key=KEY)


@pytest.mark.parametrize(
    "options",
    [
        {"enc_key": b"short"},
        {"enc_key": "a string of 16 ch"},
        {"enc_key": KEY, "enc_mode": "SM4-CBC"},
        {"enc_key": KEY, "enc_mode": "AES-ECB"},
        {"enc_key": KEY, "format": "safetensors"},
        {"enc_key": KEY, "crc_check": True},
    ],
    ids=str,
)
def test_what_cannot_be_encrypted_so_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(MscError, match="MSC0888"):
        msc.save_checkpoint(net(), tmp_path / "x.ckpt", **options)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_not_encrypted_needs_no_key(tmp_path: Path) -> None:
    for name in ("x.ckpt", "x.safetensors"):
        msc.save_checkpoint(net(), tmp_path / name)
        with pytest.raises(MscError, match=r"MSC0888.*is not encrypted"):
            msc.load_checkpoint(tmp_path / name, dec_key=KEY)


@pytest.mark.parametrize("name", ["x.ckpt", "x.safetensors"])
def test_checksums_are_written_and_checked(tmp_path: Path, name: str) -> None:
    cell, file = net(), tmp_path / name
    msc.save_checkpoint(cell, file)
    with pytest.raises(MscError, match="MSC0889"):
        msc.load_checkpoint(file, crc_check=True)
    msc.save_checkpoint(cell, file, crc_check=True)
    found = msc.load_checkpoint(file, crc_check=True)
    np.testing.assert_array_equal(found["weight"].asnumpy(), cell.trainable_params()[0].asnumpy())
    data = file.read_bytes()
    place = data.index(found["weight"].asnumpy().tobytes())
    file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(MscError, match=r"MSC0830.*checksum"):
        msc.load_checkpoint(file)


def test_mindspores_own_form_and_prefixes(tmp_path: Path) -> None:
    cell = nn.SequentialCell(net(), nn.Dense(3, 2))
    msc.save_checkpoint(cell, tmp_path / "x", format="ckpt")
    assert sorted(msc.load_checkpoint(tmp_path / "x.ckpt", specify_prefix="1.")) == ["1.bias", "1.weight"]
    assert sorted(msc.load_checkpoint(tmp_path / "x.ckpt", filter_prefix=["1."])) == ["0.bias", "0.weight"]


def test_what_is_written_in_the_background_is_of_now(tmp_path: Path) -> None:
    cell, file = net(), tmp_path / "x.ckpt"
    before = cell.trainable_params()[0].asnumpy()
    msc.save_checkpoint(cell, file, async_save=True)
    cell.trainable_params()[0].set_data(Tensor(np.zeros((3, 4), np.float32)))
    np.testing.assert_array_equal(msc.load_checkpoint(file)["weight"].asnumpy(), before)


def test_failures_in_the_background_are_told(tmp_path: Path) -> None:
    msc.save_checkpoint(net(), tmp_path / "nowhere" / "x.ckpt", async_save=True)
    with pytest.raises(MscError, match=r"MSC0890.*nowhere"):
        msc.load_checkpoint(tmp_path / "x.ckpt")
    with pytest.raises(MscError, match="MSC0887"):
        msc.save_checkpoint(net(), tmp_path / "x.ckpt", async_save="later")


def test_the_end_of_a_program_waits_and_tells(tmp_path: Path) -> None:
    code = f"""
import msc
from msc import nn
msc.save_checkpoint(nn.Dense(400, 300), {str(tmp_path / "x.ckpt")!r}, async_save=True)
msc.save_checkpoint(nn.Dense(4, 3), {str(tmp_path / "nowhere" / "y.ckpt")!r}, async_save=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "MSC0890" in done.stderr
    assert "Traceback" not in done.stderr
    assert msc.load_checkpoint(tmp_path / "x.ckpt")["weight"].shape == (300, 400)


def training(folder: Path, **options: Any) -> tuple[Model, Any, list[ModelCheckpoint]]:
    cell = net()
    data = NumpySlicesDataset((np.ones((8, 4), np.float32), np.zeros(8, np.int32)), ["x", "y"]).batch(2)
    model = Model(cell, nn.CrossEntropyLoss(), nn.SGD(cell.trainable_params(), 0.1))
    return model, data, [ModelCheckpoint("c", folder, CheckpointConfig(saved_network=cell, **options))]


def test_training_writes_encrypted_checkpoints_in_the_background(tmp_path: Path) -> None:
    model, data, callbacks = training(tmp_path, enc_key=KEY, async_save=True, save_checkpoint_steps=2)
    model.train(1, data, callbacks)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c-1_2.ckpt", "c-1_4.ckpt"]
    last = msc.load_checkpoint(tmp_path / "c-1_4.ckpt", dec_key=KEY)
    np.testing.assert_array_equal(last["weight"].asnumpy(), model.predict_network.trainable_params()[0].asnumpy())


def test_training_that_fails_leaves_what_it_reached(tmp_path: Path) -> None:
    class Failing(msc.train.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num == 3:
                raise KeyError("mine")

    model, data, callbacks = training(tmp_path, exception_save=True, save_checkpoint_steps=100)
    with pytest.raises(KeyError):
        model.train(1, data, [*callbacks, Failing()])
    assert [path.name for path in tmp_path.iterdir()] == ["c-1_3_breakpoint.ckpt"]
