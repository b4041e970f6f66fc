"""Compiled Cells whose sizes change from call to call: one graph serves all after the second shape."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Tensor, nn, ops
from tests.open_sizes.cells import try_cell


@pytest.mark.parametrize("seed", [0, 1, 6, 7])
def test_drawn_cells_agree_and_share_a_graph(seed: int) -> None:
    """More by `python -m tests.open_sizes --cells`."""
    calls = try_cell(seed)
    assert calls.served == 3, calls.story


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def test_python_that_branches_on_a_size_gets_its_own_graph() -> None:
    def branching(x: Any) -> Any:
        return x * 2 if x.shape[0] == 5 else x + x.shape[0]

    compiled = msc.jit(branching)
    for n in (2, 3, 5, 4, 5, 1):
        np.testing.assert_array_equal(compiled(ones(n)).asnumpy(), branching(ones(n)).asnumpy())
    story = msc.jit.explain(compiled)
    assert story.count("read: ") == 3
    assert "compiled: for (float32[5])" in story


def test_sizes_that_set_inputs_leaves_open_are_open_at_the_first_call() -> None:
    class Doubled(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x * 2

    net = Doubled()
    net.set_inputs(Tensor(shape=(None, msc.Symbol(max=16)), dtype=msc.float32))
    with msc.set_context(mode=msc.GRAPH_MODE):
        for shape in ((3, 4), (5, 4), (7, 16), (2, 17)):
            np.testing.assert_array_equal(net(ones(*shape)).asnumpy(), np.full(shape, 2, np.float32))
    assert "for open sizes: 1..64x1..16" in msc.jit.explain(net)
    assert msc.jit.explain(net).count("read: ") == 3
    with pytest.raises(MscError, match="at least 1"):
        msc.Symbol(min=0)
    with pytest.raises(MscError, match="set_inputs takes tensors"):
        net.set_inputs(3)


def test_sizes_that_were_equal_may_differ_later() -> None:
    compiled = msc.jit(lambda x, y: ops.matmul(x, y))
    for n, m in ((2, 2), (3, 3), (4, 5), (6, 2), (70, 80)):
        result = compiled(ones(n, 4), ones(4, m)).asnumpy()
        np.testing.assert_array_equal(result, np.full((n, m), 4, np.float32))


def test_what_has_no_elements_and_what_cannot_be_open_is_compiled_alone() -> None:
    compiled = msc.jit(lambda x: ops.sum(x) * 2)
    for n in (3, 0, 4):
        assert compiled(ones(n)).asnumpy() == 2 * n
    table = np.linspace(0, 1, 7).astype(np.float32)
    odd = msc.jit(lambda x: x + Tensor(table[:: len(table) // x.shape[0]][: x.shape[0]]))
    for n in (2, 3, 5, 7):
        wanted = 1 + table[:: 7 // n][:n]
        np.testing.assert_array_equal(odd(ones(n)).asnumpy(), wanted)
