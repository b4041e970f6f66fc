"""The multiply-adds that GFLOP/s of the benchmarks count, against those that are known."""

from __future__ import annotations

import pytest

from benchmarks.models import MODELS

KNOWN = {"resnet50": 4.09e9, "mobilenetv2": 0.301e9, "bert": 11.17e9, "vit": 4.60e9}
"""He et al. 2015 and Sandler et al. 2018 as torchvision counts them; BERT base at 128 tokens: 12 layers of
12 * 768 * 768 weights a token and two products of 128 * 768 elements a token; ViT-S/16 from DeiT's paper."""


@pytest.mark.parametrize("name", KNOWN)
def test_the_multiply_adds_of_a_network_are_those_that_are_known(name: str) -> None:
    assert MODELS[name].multiply_adds == pytest.approx(KNOWN[name], rel=5e-3)
