"""Names, order and defaults of arguments are those of MindSpore 2.x, and what layers begin with."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import signature
from typing import Any

import numpy as np
import pytest

import msc
from msc import nn, ops
from msc.common import initializer as init
from msc.common.initializer import initializer

SIGNATURES = {
    nn.Dense: "in_channels, out_channels, weight_init=None, bias_init=None, has_bias=True, activation=None, "
    "dtype=msc.float32",
    nn.Conv2d: "in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, dilation=1, group=1, "
    "has_bias=False, weight_init=None, bias_init=None, data_format='NCHW', dtype=msc.float32",
    nn.Conv2dTranspose: "in_channels, out_channels, kernel_size, stride=1, pad_mode='same', padding=0, "
    "output_padding=0, dilation=1, group=1, has_bias=False, weight_init=None, bias_init=None, dtype=msc.float32",
    nn.MaxPool2d: "kernel_size=1, stride=1, pad_mode='valid', padding=0, dilation=1, return_indices=False, "
    "ceil_mode=False, data_format='NCHW'",
    nn.AvgPool2d: "kernel_size=1, stride=1, pad_mode='valid', padding=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=None, data_format='NCHW'",
    nn.BatchNorm2d: "num_features, eps=1e-05, momentum=0.9, affine=True, gamma_init='ones', beta_init='zeros', "
    "moving_mean_init='zeros', moving_var_init='ones', use_batch_statistics=None, data_format='NCHW', "
    "dtype=msc.float32",
    nn.LayerNorm: "normalized_shape, begin_norm_axis=-1, begin_params_axis=-1, gamma_init='ones', beta_init='zeros', "
    "epsilon=1e-07, dtype=msc.float32",
    nn.Dropout: "keep_prob=0.5, p=None, dtype=msc.float32",
    nn.LeakyReLU: "alpha=0.2",
    nn.Embedding: "vocab_size, embedding_size, use_one_hot=False, embedding_table='normal', dtype=msc.float32, "
    "padding_idx=None",
    nn.LSTM: "input_size, hidden_size, num_layers=1, has_bias=True, batch_first=False, dropout=0.0, "
    "bidirectional=False, dtype=msc.float32",
    nn.MultiheadAttention: "embed_dim, num_heads, dropout=0.0, has_bias=True, add_bias_kv=False, add_zero_attn=False, "
    "kdim=None, vdim=None, batch_first=False, dtype=msc.float32",
    nn.SoftmaxCrossEntropyWithLogits: "sparse=False, reduction='none'",
    init.TruncatedNormal: "sigma=0.01, mean=0.0, a=-2.0, b=2.0",
    init.Normal: "sigma=0.01, mean=0.0",
    init.Uniform: "scale=0.07",
    ops.softmax: "input, axis=-1, dtype=None",
    ops.conv2d: "input, weight, bias=None, stride=1, pad_mode='valid', padding=0, dilation=1, groups=1",
    ops.cross_entropy: "input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0",
}


@pytest.mark.parametrize("callable_", SIGNATURES, ids=lambda c: c.__name__)
def test_arguments(callable_: Callable[..., Any]) -> None:
    arguments = signature(callable_).parameters.values()
    written = ", ".join(a.name if a.default is Argument.empty else f"{a.name}={a.default!r}" for a in arguments)
    assert written == SIGNATURES[callable_]


def test_attributes_of_operators() -> None:
    assert ops.Conv2D(4, 3).attrs["pad_mode"] == "valid"
    assert ops.LayerNorm().attrs == {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-7}
    assert ops.BatchNorm().attrs["is_training"] is False
    assert ops.ArgMaxWithValue().attrs == {"axis": 0, "keep_dims": False}


def test_what_layers_begin_with() -> None:
    msc.set_seed(0)
    layers: Any = nn.Dense(400, 120), nn.Conv2d(1, 60, 5)
    for parameter, limit in ((layers[0].weight, 0.05), (layers[0].bias, 0.05), (layers[1].weight, 0.2)):
        values = parameter.asnumpy()
        assert 0.9 * limit < np.abs(values).max() <= limit
        assert values.std() == pytest.approx(limit / 3**0.5, rel=0.1)
    assert nn.Conv2d(1, 6, 5).bias is None


@pytest.mark.parametrize(
    ("made", "deviation"),
    [
        ("normal", 0.01),
        ("truncatedNormal", 0.0088),
        ("uniform", 0.07 / 3**0.5),
        ("xavier_uniform", (2 / 500) ** 0.5),
        ("he_normal", (2 / 200) ** 0.5),
        (init.HeUniform(), (2 / 200) ** 0.5),
        (init.TruncatedNormal(0.02), 0.0176),
        (init.Constant(3), 0.0),
        ("ones", 0.0),
    ],
)
def test_initialisers(made: Any, deviation: float) -> None:
    msc.set_seed(1)
    assert initializer(made, [300, 200]).asnumpy().std() == pytest.approx(deviation, rel=0.05)


def test_some_initialisers_have_a_structure() -> None:
    q = initializer("orthogonal", [4, 6]).asnumpy()
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-5)
    assert initializer("identity", [3, 3]).tolist() == np.eye(3).tolist()
    assert initializer(2, [2], msc.int32).tolist() == [2, 2]


@pytest.mark.parametrize(
    "expression",
    [
        lambda: nn.Conv2d(3, 4, 3, 1, "same", 0, 1, 1, "NCHW", True),  # pyright: ignore[reportArgumentType]
        lambda: nn.Conv2d(3, 4, 3, pad_mode="smae"),
        lambda: nn.Conv2d(3, 4, 3, group=2),
        lambda: nn.Dense(0, 4),
        lambda: nn.Dense("4", 4),  # pyright: ignore[reportArgumentType]
        lambda: nn.Dropout(p=1.5),
        lambda: nn.LSTM(3, 4, dropout=2),
        lambda: nn.GroupNorm(3, 4),
        lambda: nn.MultiheadAttention(5, 2),
        lambda: nn.MSELoss("average"),
    ],
)
def test_arguments_that_cannot_be(expression: Callable[[], object]) -> None:
    with pytest.raises(msc.MscError, match="MSC0824"):
        expression()
