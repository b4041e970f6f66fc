"""The samples' texts and data files fit each other, and LeNet-5's weights recognise the held-out digits."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from safetensors.numpy import load

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
NAMES = ("lenet5", "mlp", "resnet_tiny", "attention")

Array = npt.NDArray[np.float32]


def declared(sample: str, keyword: str) -> dict[str, tuple[int, ...]]:
    text = (SAMPLES / sample / f"{sample}.mir").read_text(encoding="utf-8")
    found = re.findall(rf"{keyword} @([\w.]+) : tensor<([\dx]+)xf32>", text)
    return {name: tuple(int(size) for size in sizes.split("x")) for name, sizes in found}


def stored(sample: str) -> dict[str, Array]:
    return load((SAMPLES / sample / f"{sample}.safetensors").read_bytes())


@pytest.mark.parametrize("sample", NAMES)
def test_the_weight_file_holds_exactly_the_declared_parameters(sample: str) -> None:
    tensors = stored(sample)
    assert declared(sample, "ms.parameter") == {name: tensor.shape for name, tensor in tensors.items()}
    assert all(tensor.dtype == np.float32 for tensor in tensors.values())


@pytest.mark.parametrize("sample", NAMES)
def test_every_parameter_is_used_with_its_declared_type(sample: str) -> None:
    assert declared(sample, "ms.get_parameter") == declared(sample, "ms.parameter")


@pytest.mark.parametrize("sample", ["mlp", "resnet_tiny", "attention"])
def test_the_random_weights_are_what_the_script_writes(sample: str) -> None:
    script: dict[str, Any] = runpy.run_path(str(SAMPLES / "random_weights.py"))
    for name, tensor in stored(sample).items():
        np.testing.assert_allclose(tensor, script["weights"](name, tensor.shape), rtol=1e-6)


def test_batch_norm_variances_are_positive() -> None:
    variances = [tensor for name, tensor in stored("resnet_tiny").items() if name.endswith("variance")]
    assert variances
    assert all(tensor.min() > 0 for tensor in variances)


def convolve(x: Array, weight: Array, bias: Array) -> Array:
    windows = sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True) + bias[:, None, None]


def pool(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def lenet5(x: Array, weights: dict[str, Array]) -> Array:
    for layer in ("conv1", "conv2"):
        x = pool(np.maximum(convolve(x, weights[f"{layer}.weight"], weights[f"{layer}.bias"]), 0))
    x = x.reshape(len(x), -1)
    for layer in ("fc1", "fc2"):
        x = np.maximum(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"], 0)
    return x @ weights["fc3.weight"].T + weights["fc3.bias"]


def test_lenet5_recognises_the_held_out_digits() -> None:
    digits = load((SAMPLES / "lenet5" / "digits_test.safetensors").read_bytes())
    images, labels = digits["images"], digits["labels"]
    assert (images.shape, images.dtype, labels.shape) == ((360, 1, 32, 32), np.dtype(np.uint8), (360,))
    logits = lenet5(images.astype(np.float32) / np.float32(255), stored("lenet5"))
    assert np.mean(logits.argmax(1) == labels) >= 0.98


def test_lenet5_is_trained_by_msc_alone(tmp_path: Path) -> None:
    """Two steps of training, then all that follows."""
    command = [sys.executable, str(SAMPLES / "lenet5" / "train.py"), "--rows", "64", "--mode", "pynative"]
    done = subprocess.run([*command, "--epochs", "1"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert re.findall(r"epoch: 1 step: 2, loss", done.stdout)
    assert re.search(r"held-out digits: [\d.]+% right", done.stdout)
    folder = tmp_path / "lenet5-trained"
    assert {name: tensor.shape for name, tensor in load((folder / "lenet5.safetensors").read_bytes()).items()} == (
        declared("lenet5", "ms.parameter")
    )
    assert {"lenet5_net.mir", "lenet5_net.onnx", "lenet5_net.so"} <= {path.name for path in folder.iterdir()}
