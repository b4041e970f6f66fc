"""Layers and functions against PyTorch, with the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from msc import Tensor, nn, ops
from msc.nn import Cell

RNG = np.random.default_rng(0)


def data(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


RENAMED = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def matched(cell: Cell, module: torch.nn.Module) -> None:
    """Give the module the cell's parameters, by name."""
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    for name, parameter in cell.parameters_and_names():
        *place, last = name.split(".")
        with torch.no_grad():
            state[".".join([*place, RENAMED.get(last, last)])].copy_(torch.tensor(parameter.asnumpy()))


def agree(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    if not hasattr(theirs, "detach"):
        parts: Any = zip(ours, theirs, strict=True)
        for a, b in parts:
            agree(a, b, tolerance)
    else:
        np.testing.assert_allclose(ours.asnumpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("cell", "module", "shape"),
    [
        (lambda: nn.Dense(5, 3), lambda: torch.nn.Linear(5, 3), (2, 4, 5)),
        (lambda: nn.Conv1d(4, 6, 3, 2, "pad", 1, has_bias=True), lambda: torch.nn.Conv1d(4, 6, 3, 2, 1), (2, 4, 9)),
        (
            lambda: nn.Conv2d(4, 6, (3, 2), 2, "pad", (1, 1, 0, 0), (1, 2), 2, has_bias=True),
            lambda: torch.nn.Conv2d(4, 6, (3, 2), 2, (1, 0), (1, 2), 2),
            (2, 4, 9, 8),
        ),
        (lambda: nn.Conv3d(2, 3, 2, pad_mode="valid"), lambda: torch.nn.Conv3d(2, 3, 2, bias=False), (1, 2, 3, 4, 5)),
        (
            lambda: nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, 1, has_bias=True),
            lambda: torch.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
            (2, 4, 5, 5),
        ),
        (
            lambda: nn.Conv1dTranspose(4, 6, 3, 2, "valid"),
            lambda: torch.nn.ConvTranspose1d(4, 6, 3, 2, bias=False),
            (2, 4, 5),
        ),
        (lambda: nn.LayerNorm((5,), epsilon=1e-5), lambda: torch.nn.LayerNorm(5), (2, 3, 5)),
        (lambda: nn.GroupNorm(2, 4), lambda: torch.nn.GroupNorm(2, 4), (2, 4, 3, 3)),
        (lambda: nn.InstanceNorm2d(4), lambda: torch.nn.InstanceNorm2d(4, affine=True), (2, 4, 3, 3)),
        (lambda: nn.BatchNorm2d(4), lambda: torch.nn.BatchNorm2d(4).eval(), (2, 4, 3, 3)),
        (lambda: nn.RNN(5, 4, 2, "relu"), lambda: torch.nn.RNN(5, 4, 2, "relu"), (3, 2, 5)),
        (
            lambda: nn.GRU(5, 4, 2, batch_first=True, bidirectional=True),
            lambda: torch.nn.GRU(5, 4, 2, batch_first=True, bidirectional=True),
            (2, 3, 5),
        ),
        (
            lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, "relu", norm_first=True),
            lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True).eval(),
            (3, 2, 8),
        ),
        (lambda: nn.MaxPool2d(3, 2), lambda: torch.nn.MaxPool2d(3, 2), (1, 2, 7, 7)),
        (
            lambda: nn.MaxPool2d(3, 2, "pad", 1, ceil_mode=True),
            lambda: torch.nn.MaxPool2d(3, 2, 1, ceil_mode=True),
            (1, 2, 8, 8),
        ),
        (lambda: nn.AvgPool2d(3, 2, "pad", 1), lambda: torch.nn.AvgPool2d(3, 2, 1), (1, 2, 7, 7)),
        (lambda: nn.AdaptiveAvgPool2d((3, 5)), lambda: torch.nn.AdaptiveAvgPool2d((3, 5)), (1, 2, 7, 10)),
        (lambda: nn.AdaptiveMaxPool2d(3), lambda: torch.nn.AdaptiveMaxPool2d(3), (1, 2, 7, 10)),
        (lambda: nn.GELU(False), lambda: torch.nn.GELU(), (20,)),
        (lambda: nn.Softplus(), lambda: torch.nn.Softplus(), (20,)),
        (lambda: nn.HShrink(), lambda: torch.nn.Hardshrink(), (20,)),
        (lambda: nn.SoftShrink(), lambda: torch.nn.Softshrink(), (20,)),
        (lambda: nn.LogSigmoid(), lambda: torch.nn.LogSigmoid(), (20,)),
        (lambda: nn.GLU(), lambda: torch.nn.GLU(), (3, 4)),
        (lambda: nn.PixelShuffle(2), lambda: torch.nn.PixelShuffle(2), (1, 8, 2, 3)),
    ],
)
def test_layer(cell: Callable[[], Cell], module: Callable[[], torch.nn.Module], shape: tuple[int, ...]) -> None:
    ours, theirs, x = cell(), module(), data(*shape)
    matched(ours, theirs)
    agree(ours(Tensor(x)), theirs(torch.tensor(x)))


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_with_lengths_and_states(bidirectional: bool) -> None:
    ours = nn.LSTM(5, 4, 2, bidirectional=bidirectional)
    theirs = torch.nn.LSTM(5, 4, 2, bidirectional=bidirectional)
    matched(ours, theirs)
    x, lengths = data(6, 3, 5), [6, 2, 4]
    h, c = data(2 * (1 + bidirectional), 3, 4), data(2 * (1 + bidirectional), 3, 4)
    agree(ours(Tensor(x), (Tensor(h), Tensor(c))), theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c))))
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), torch.tensor(lengths), enforce_sorted=False)
    output, state = theirs(packed)
    unpacked, _ = torch.nn.utils.rnn.pad_packed_sequence(output)
    agree(ours(Tensor(x), None, Tensor(lengths)), (unpacked, state))


def test_attention_with_masks() -> None:
    ours, theirs = nn.MultiheadAttention(8, 2), torch.nn.MultiheadAttention(8, 2)
    matched(ours, theirs)
    q, k = data(3, 2, 8), data(4, 2, 8)
    padding = np.array([[False, False, True, False], [False] * 4])
    mask = np.triu(np.ones((3, 4), bool), 2)
    expected = theirs(*map(torch.tensor, (q, k, k)), torch.tensor(padding), True, torch.tensor(mask))
    agree(ours(Tensor(q), Tensor(k), Tensor(k), Tensor(padding), True, Tensor(mask)), expected)


def test_transformer() -> None:
    arguments: Any = (8, 2, 2, 2, 16, 0.0)
    ours, theirs = nn.Transformer(*arguments), torch.nn.Transformer(*arguments).eval()
    matched(ours, theirs)
    source, target = data(4, 2, 8), data(3, 2, 8)
    agree(ours(Tensor(source), Tensor(target)), theirs(torch.tensor(source), torch.tensor(target)))


def test_batch_norm_while_trained() -> None:
    ours, theirs = nn.BatchNorm2d(3).set_train(), torch.nn.BatchNorm2d(3)
    x = data(4, 3, 5, 5)
    agree(ours(Tensor(x)), theirs(torch.tensor(x)))
    agree(ours.moving_mean, theirs.running_mean)
    agree(ours.moving_variance, theirs.running_var)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction: str) -> None:
    f = torch.nn.functional
    x, y, w, classes = data(4, 5), data(4, 5), np.abs(data(5)), np.array([0, 4, -100, 2])
    p, q = 1 / (1 + np.exp(-x)), np.exp(y) / np.exp(y).sum(1, keepdims=True)
    t = torch.tensor
    pairs: list[tuple[Any, Any]] = [
        (ops.mse_loss(Tensor(x), Tensor(y), reduction), f.mse_loss(t(x), t(y), reduction=reduction)),
        (ops.l1_loss(Tensor(x), Tensor(y), reduction), f.l1_loss(t(x), t(y), reduction=reduction)),
        (
            ops.smooth_l1_loss(Tensor(x), Tensor(y), 0.5, reduction),
            f.smooth_l1_loss(t(x), t(y), beta=0.5, reduction=reduction),
        ),
        (ops.huber_loss(Tensor(x), Tensor(y), reduction, 0.7), f.huber_loss(t(x), t(y), reduction, 0.7)),
        (
            ops.cross_entropy(Tensor(x), Tensor(classes), Tensor(w), -100, reduction, 0.1),
            f.cross_entropy(t(x), t(classes), t(w), ignore_index=-100, reduction=reduction, label_smoothing=0.1),
        ),
        (
            ops.cross_entropy(Tensor(x), Tensor(q), reduction=reduction),
            f.cross_entropy(t(x), t(q), reduction=reduction),
        ),
        (
            ops.binary_cross_entropy(Tensor(p), Tensor(q), reduction=reduction),
            f.binary_cross_entropy(t(p), t(q), reduction=reduction),
        ),
        (
            ops.binary_cross_entropy_with_logits(Tensor(x), Tensor(q), Tensor(w), Tensor(w), reduction),
            f.binary_cross_entropy_with_logits(t(x), t(q), t(w), pos_weight=t(w), reduction=reduction),
        ),
        (ops.kl_div(Tensor(x), Tensor(q), reduction), f.kl_div(t(x), t(q), reduction=reduction)),
        (
            ops.triplet_margin_loss(Tensor(x), Tensor(y), Tensor(p), reduction=reduction),
            f.triplet_margin_loss(t(x), t(y), t(p), reduction=reduction),
        ),
        (
            ops.cosine_embedding_loss(Tensor(x), Tensor(y), Tensor([1, -1, 1, -1]), 0.1, reduction),
            f.cosine_embedding_loss(t(x), t(y), t([1, -1, 1, -1]), 0.1, reduction=reduction),
        ),
    ]
    for ours, theirs in pairs:
        agree(ours, theirs)


@pytest.mark.parametrize(
    ("mode", "align", "size"),
    [
        ("nearest", None, 7),
        ("bilinear", False, 7),
        ("bilinear", True, 7),
        ("bicubic", False, 9),
        ("bilinear", False, 3),
    ],
)
def test_interpolate(mode: str, align: bool | None, size: int) -> None:
    x = data(1, 2, 5, 5)
    theirs = torch.nn.functional.interpolate(torch.tensor(x), (size, size), mode=mode, align_corners=align)
    agree(ops.interpolate(Tensor(x), (size, size), mode=mode, align_corners=align), theirs)


def test_unfold_and_pad() -> None:
    x = data(2, 3, 6, 5)
    f = torch.nn.functional
    agree(ops.unfold(Tensor(x), (2, 3), 1, 1, 2), f.unfold(torch.tensor(x), (2, 3), 1, 1, 2))
    for mode in ("constant", "reflect", "replicate", "circular"):
        agree(ops.pad(Tensor(x), (1, 2, 3, 0), mode), f.pad(torch.tensor(x), (1, 2, 3, 0), mode))
