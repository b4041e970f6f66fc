"""Random numbers from a counter: known answers, the same in both modes, and as they should be spread."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE
from msc.ops.philox import Words, philox, random_words


def words(*values: int) -> Words:
    a, b, c, d = (Tensor.of(np.array(v, np.uint64)) for v in values)
    return a, b, c, d


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0,) * 4, (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers(counter: tuple[int, ...], key: tuple[int, int], expected: str) -> None:
    """Those of Random123, the reference implementation."""
    found = philox(words(*counter), words(*key, 0, 0)[:2])
    assert " ".join(f"{int(word):08x}" for word in found) == expected


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: ops.dropout(x, 0.3),
    "channels": lambda x: ops.dropout2d(x[None], 0.5),
    "standard_normal": lambda x: x + ops.standard_normal((3, 5)),
    "rand": lambda x: x * ops.rand(3, 5),
    "uniform": lambda x: ops.uniform((2, 3, 5), -1.0, x),
    "normal": lambda x: x + ops.normal((3, 5), x, 2.0),
    "bernoulli": lambda x: ops.bernoulli(x, 0.25),
    "gumbel_softmax": lambda x: ops.gumbel_softmax(x),
    "with a seed": lambda x: x + ops.randn(3, 5, seed=4) - ops.randn(3, 5, seed=4),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_modes_draw_the_same(name: str) -> None:
    function = FUNCTIONS[name]
    x = Tensor(np.linspace(0.1, 1, 15, dtype=np.float32).reshape(3, 5))
    compiled = msc.jit(function, fullgraph=True)
    found: list[list[Any]] = []
    for run in (function, compiled):
        msc.set_seed(11)
        found.append([run(x).asnumpy() for _ in range(3)])
    np.testing.assert_allclose(found[1], found[0], rtol=2e-6, atol=2e-6)
    if name != "with a seed":
        assert not np.array_equal(found[0][0], found[0][1])


def test_another_seed_draws_other_numbers() -> None:
    drawn: list[Any] = []
    for seed in (1, 2, 1):
        msc.set_seed(seed)
        drawn.append(ops.rand(8).tolist())
    assert drawn[0] == drawn[2] != drawn[1]


def test_words_continue_one_sequence() -> None:
    msc.set_seed(5)
    parts = [random_words(n).asnumpy() for n in (4, 8, 4)]
    msc.set_seed(5)
    assert np.array_equal(np.concatenate(parts), random_words(16).asnumpy())
    assert len({int(word) for part in parts for word in part}) == 16


def test_they_are_spread_as_they_should_be() -> None:
    msc.set_seed(0)
    count = 200_000
    uniform, normal = ops.rand(count).asnumpy().astype(np.float64), ops.randn(count).asnumpy().astype(np.float64)
    assert (uniform >= 0).all()
    assert (uniform < 1).all()
    deviation = 5 / np.sqrt(count)
    for power in (1, 2, 3):
        assert (uniform**power).mean() == pytest.approx(1 / (power + 1), abs=deviation)
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert (normal**power).mean() == pytest.approx(moment, abs=12 * deviation)
    assert np.corrcoef(uniform[:-1], uniform[1:])[0, 1] == pytest.approx(0, abs=deviation)
    kept = ops.dropout(Tensor(np.ones(count, np.float32)), 0.3).asnumpy()
    assert {float(v) for v in kept} == {0.0, float(np.float32(1 / 0.7))}
    assert (kept > 0).mean() == pytest.approx(0.7, abs=deviation)


@pytest.mark.parametrize("mode", [PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def test_the_gradient_of_dropout_keeps_what_it_kept(mode: int) -> None:
    net = nn.Dropout(p=0.5).set_train()
    x = Tensor(np.ones(64, np.float32))
    with msc.set_context(mode=mode):
        msc.set_seed(1)
        value, gradient = msc.value_and_grad(lambda v: net(v) * v)(x)
    kept = value.asnumpy()
    assert {float(v) for v in kept} == {0.0, 2.0}
    assert np.array_equal(gradient.asnumpy(), kept * 2)


def test_permutations_while_a_gradient_is_taken() -> None:
    msc.set_seed(0)
    gradient = msc.grad(lambda x: (x[ops.randperm(4)] * Tensor([1.0, 2.0, 3.0, 4.0])).sum())(Tensor(np.ones(4)))
    assert sorted(gradient.tolist()) == [1.0, 2.0, 3.0, 4.0]
