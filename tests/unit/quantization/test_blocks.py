"""Dense layers with weights of few bits: what they compute, and that a compiled network keeps them packed."""

from __future__ import annotations

import numpy as np
import pytest

import msc
from msc import Tensor
from msc.model_zoo import Llama, LlamaConfig
from msc.quantization.blocks import pack_dense_layers, rounded_to_nearest
from tests.unit.model_zoo.small_networks import tokens, with_random_weights


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_number_is_off_by_a_step_at_most(bits: int) -> None:
    weight = np.random.default_rng(bits).normal(size=(5, 96)).astype(np.float32)
    weight[0, :32] = 0
    codes, scale = rounded_to_nearest(weight, bits, 32)
    error = np.abs((codes.reshape(5, 3, 32) - 2.0 ** (bits - 1)) * scale[:, :, None] - weight.reshape(5, 3, 32))
    assert (error <= np.abs(scale)[:, :, None] * (1 + 1e-5)).all()
    assert error.mean() <= 0.3 * np.abs(scale).mean()


def test_a_packed_llama_is_near_and_compiles() -> None:
    net = Llama(LlamaConfig(30, 32, 64, 1, 4, 2))
    with_random_weights(net)
    row = tokens(1, 5)
    exact = net(Tensor(row)).asnumpy()
    assert pack_dense_layers(net, 8) == 8
    found = net(Tensor(row)).asnumpy()
    assert 0 < np.abs(found - exact).max() < 0.05 * np.abs(exact).max()
    np.testing.assert_allclose(np.asarray(msc.compile(net, Tensor(row))(row)), found, rtol=2e-3, atol=2e-3)
