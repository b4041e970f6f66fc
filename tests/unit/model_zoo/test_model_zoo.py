"""The zoo's networks compiled, against the same in PyNative mode; a decoder a token at a time, against whole ones."""

from __future__ import annotations

import time

import numpy as np
import pytest

import msc
from msc import Tensor
from msc.formats.capture import capture
from msc.model_zoo import GptDecoder, GptStep, resnet50
from tests.unit.model_zoo.small_networks import NETWORKS, arrays, tokens, with_random_weights


@pytest.mark.parametrize("name", NETWORKS)
def test_compiled_networks_agree(name: str) -> None:
    make, inputs = NETWORKS[name]
    net = with_random_weights(make())
    given = [Tensor(array) for array in inputs()]
    compiled = msc.compile(net, *given)
    for got, expected in zip(arrays(compiled(*inputs())), arrays(net(*given)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-5 * np.abs(expected).max())


def test_a_token_at_a_time_is_the_whole() -> None:
    decoder = GptDecoder(30, 16, 2, 2, 16)
    with_random_weights(decoder)
    row = tokens(1, 6)
    (whole,) = arrays(decoder(Tensor(row)))
    step = GptStep(decoder, 8)
    compiled = msc.compile(step, Tensor(row[:, :1]), Tensor(np.array(0, np.int32)))
    states = [np.zeros(step.keys.shape, np.float32) for _ in range(2)]
    for place in range(row.shape[1]):
        here = np.array(place, np.int32)
        found, *_ = arrays(compiled(row[:, place : place + 1], here, *states))
        np.testing.assert_allclose(found[0], whole[0, place], rtol=2e-4, atol=2e-4)
        eager = step(Tensor(row[:, place : place + 1]), Tensor(here)).asnumpy()
        np.testing.assert_allclose(eager[0], whole[0, place], rtol=2e-4, atol=2e-4)


def test_capture_takes_less_than_a_second() -> None:
    net, image = resnet50(), Tensor(np.zeros((1, 3, 224, 224), np.float32))
    start = time.process_time()
    capture(net, [image])
    assert time.process_time() - start < 1
