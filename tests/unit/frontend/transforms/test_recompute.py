"""`Cell.recompute()` and `Primitive.recompute()`: less memory, the same values and gradients, in both modes."""

# Results are trees of tensors.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from msc.graph.autodiff.reverse import CUSTOM
from msc.support.diagnostics import MscError

MODES = pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])


class Block(nn.Cell):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up, self.down, self.act = nn.Dense(width, inner), nn.Dense(inner, width), nn.GELU()

    def construct(self, x: Any) -> Any:
        return x + self.down(self.act(self.up(x)))


class Dropping(Block):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__(width, inner)
        self.drop, self.norm = nn.Dropout(p=0.5), nn.BatchNorm1d(width)

    def construct(self, x: Any) -> Any:
        return self.norm(self.drop(self.down(self.up(x))))


class Squared(nn.Cell):
    """Its own gradient is three times the true one."""

    def construct(self, x: Any) -> Any:
        return x * x

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (6 * x * dout,)


class WithOwnGradient(nn.Cell):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        del inner
        self.up, self.squared = nn.Dense(width, width), Squared()

    def construct(self, x: Any) -> Any:
        return self.squared(ops.tanh(self.up(x)))


class Twice(nn.Cell):
    """Two outputs, one of which is an input, of an inner cell that is computed again as well."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.inner = Block(width, inner)

    def construct(self, x: Any) -> Any:
        y = self.inner(x)
        both = (ops.tanh(y), y, x)
        return both[0] * both[1] + both[2]


class Looping(Block):
    """In a loop, and with a choice by elements."""

    def construct(self, x: Any) -> Any:
        total = x
        for _ in range(2):
            total = super().construct(total)
        return total if ops.reduce_sum(x) > 1e6 else total * 2


def net(kind: Callable[[int, int], nn.Cell], width: int, inner: int, blocks: int, recompute: bool) -> nn.Cell:
    """Blocks one behind the other, with random weights."""
    cells = [kind(width, inner) for _ in range(blocks)]
    rng = np.random.default_rng(7)
    for cell in cells:
        for p in cell.trainable_params():
            p.set_data(Tensor((rng.standard_normal(p.shape) / np.sqrt(p.shape[-1])).astype(np.float32)))
        for inner_cell in [cell, *cell.cells()] if recompute else ():
            if isinstance(inner_cell, Block | Twice | WithOwnGradient):
                inner_cell.recompute()
    return nn.SequentialCell(cells).set_train()


def array(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(3).standard_normal(shape).astype(np.float32))


def results(cell: nn.Cell, mode: int) -> list[np.ndarray[Any, Any]]:
    with msc.set_context(mode=mode):
        msc.set_seed(5)

        def loss(x: Any) -> Any:
            return ops.reduce_mean(cell(x) ** 2)

        weights = cell.trainable_params()
        value, (by_input, by_weights) = msc.value_and_grad(loss, 0, weights)(array(4, 6))
        return [v.asnumpy() for v in (value, by_input, *by_weights)]


@pytest.mark.parametrize("kind", [Block, Dropping, WithOwnGradient, Twice, Looping])
def test_gradients_are_those_without(kind: Callable[[int, int], nn.Cell]) -> None:
    plain, again = (results(net(kind, 6, 8, 2, recompute), msc.PYNATIVE_MODE) for recompute in (False, True))
    for expected, found in zip(plain, again, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [Dropping, WithOwnGradient])
def test_compiled_gradients_are_those_of_python(kind: Callable[[int, int], nn.Cell]) -> None:
    python, compiled = (results(net(kind, 6, 8, 1, True), mode) for mode in (msc.PYNATIVE_MODE, msc.GRAPH_MODE))
    for expected, found in zip(python, compiled, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@MODES
def test_second_derivatives(mode: int) -> None:
    found: list[Any] = []
    for recompute in (False, True):
        cell = ByPrimitives(recompute)
        if recompute:
            cell.recompute()
        with msc.set_context(mode=mode):
            first = msc.grad(lambda x, cell=cell: ops.reduce_sum(cell(x) ** 2))
            found.append(msc.grad(lambda x, first=first: ops.reduce_sum(first(x) ** 2))(array(2, 4)).asnumpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_gradients_of_examples() -> None:
    plain, again = (
        msc.vmap(msc.grad(lambda x, cell=cell: ops.reduce_sum(ops.tanh(cell(x)))))(array(3, 2, 4)).asnumpy()
        for cell in (net(Block, 4, 5, 1, False), net(Block, 4, 5, 1, True))
    )
    np.testing.assert_allclose(again, plain, rtol=1e-6, atol=1e-7)


def trained(recompute: bool) -> tuple[int, list[np.ndarray[Any, Any]]]:
    """The workspace of a training step of a deep net, and what the step gives: the loss and the weights."""
    x, y = array(64, 16), array(64, 16)
    step = nn.TrainOneStepCell(
        nn.WithLossCell(cell := net(Block, 16, 64, 3, recompute), nn.MSELoss()),
        nn.SGD(cell.trainable_params(), 0.1),
    ).set_train()
    model = msc.compile(step, x, y, threads=1, march="x86-64-v3", use_cache=False)
    values = {p.name: p.asnumpy() for p in step.get_parameters()}
    states = [np.array(values[t.name], order="C") for t in model.inputs[2:]]
    loss = model(x.asnumpy(), y.asnumpy(), *states)
    return model.signature.workspace_bytes, [np.asarray(loss[0] if isinstance(loss, tuple) else loss), *states]


def test_a_deep_step_takes_less_memory() -> None:
    (stored, expected), (recomputed, found) = trained(False), trained(True)
    inner = 64 * 64 * 4
    assert recomputed <= stored - 2 * inner
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-7)


class ByPrimitives(nn.Cell):
    def __init__(self, again: bool, stores: bool = False) -> None:
        super().__init__()
        self.tanh, self.exp = ops.Tanh(), ops.Exp()
        if again:
            self.exp.recompute()
        if stores:
            self.tanh.recompute(False)

    def construct(self, x: Any) -> Any:
        return ops.sin(self.exp(self.tanh(x)))


def gradient_text(cell: nn.Cell) -> str:
    """The graph of the gradient."""

    class Gradient(nn.Cell):
        def construct(self, x: Any) -> Any:
            return msc.value_and_grad(lambda y: ops.reduce_sum(cell(y)))(x)

    return Gradient().to_mir(array(3))


def test_primitives_are_computed_again_or_stored() -> None:
    assert gradient_text(ByPrimitives(False)).count("ms.exp") == 1
    assert gradient_text(ByPrimitives(True)).count("ms.exp") == 2
    whole, stored = ByPrimitives(False), ByPrimitives(False, stores=True)
    for cell in (whole, stored):
        cell.recompute()
    assert gradient_text(whole).count("ms.tanh") == 2
    assert gradient_text(stored).count("ms.tanh") == 1
    assert gradient_text(stored).count("ms.exp") == 2
    plain, *others = (
        msc.grad(lambda x, cell=cell: ops.reduce_sum(cell(x)))(array(3)).asnumpy()
        for cell in (ByPrimitives(False), ByPrimitives(True), whole, stored)
    )
    for other in others:
        np.testing.assert_array_equal(other, plain)


def test_a_change_is_seen_by_a_compiled_graph() -> None:
    cell = ByPrimitives(False)
    with msc.set_context(mode=msc.GRAPH_MODE):
        gradient = msc.jit(lambda x: msc.grad(lambda y: ops.reduce_sum(cell(y)))(x))
        before = gradient(array(2, 4)).asnumpy()
        cell.recompute()
        after = gradient(array(2, 4)).asnumpy()
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-7)
    assert "the attribute '_recomputes' of a ByPrimitives has changed" in msc.jit.explain(gradient)


def test_nothing_is_left_of_a_pynative_step() -> None:
    before = len(CUSTOM)
    results(net(Block, 6, 8, 2, True), msc.PYNATIVE_MODE)
    assert len(CUSTOM) == before


def test_options_are_bools() -> None:
    cell = Block(2, 2)
    cell.recompute(mp_comm_recompute=False, parallel_optimizer_comm_recompute=True)
    with pytest.raises(MscError, match="MSC0824"):
        cell.recompute(mp_comm_recompute=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(MscError, match="MSC0828"):
        ops.Tanh().recompute("yes")  # pyright: ignore[reportArgumentType]
