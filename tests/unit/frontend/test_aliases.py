"""Who sees a write: the same in both modes, and nobody's memory is another's."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from tests.random_aliases.programs import FULL, check


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_random_programs(first: int) -> None:
    """`python -m tests.random_aliases --count 300` runs many."""
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.parametrize("text", FULL)
def test_full_slices_are_copies(text: str) -> None:
    source, name = "chosen = lambda x: " + text.format("x"), f"<full slice {text}>"
    linecache.cache[name] = (len(source), None, [source], name)
    scope: dict[str, Any] = {"Tensor": Tensor}
    exec(compile(source, name, "exec"), scope)
    chosen: Callable[[Any], Any] = scope["chosen"]

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.p = Parameter(Tensor(np.ones((2, 3), np.float32)), name="p")

        def construct(self, x: Any) -> Any:
            a, b, before = chosen(self.p), chosen(x), chosen(x)
            a[0] = 9.0
            b[0] = -1.0
            x = x + 1
            return a + b, before, x

    results: list[Any] = []
    for run in (lambda net: net, lambda net: msc.jit(net, backend="interpreter", fullgraph=True)):
        net, x = Net(), Tensor(np.full((2, 3), 5, np.float32))
        results.append([t.tolist() for t in (*run(net)(x), net.p, x)])
        assert (net.p.asnumpy() == 1).all()
        assert (x.asnumpy() == 5).all()
    assert results[0] == results[1]


def test_a_model_that_writes_into_a_full_slice_is_compiled() -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            y = x[:]
            y[0] = 9.0
            return x + y

    compiled = msc.compile(Net(), Tensor([1.0, 2.0]))
    assert compiled(np.array([3, 4], np.float32)).tolist() == [12, 8]


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "slice": lambda x: x[:],
    "part": lambda x: x[0:1],
    "backwards": lambda x: x[::-1],
    "reshape": lambda x: x.reshape(2, 1),
    "copy": lambda x: x.copy(),
    "value": lambda x: x.value(),
    "stop_gradient": ops.stop_gradient,
    "tensor": Tensor,
    "parameter": lambda x: Parameter(x, name="p"),
    "set_data": lambda x: Parameter(Tensor([0.0, 0.0]), name="p").set_data(x),
    "assign_value": lambda x: Tensor([0.0, 0.0]).assign_value(x),
    "jit": msc.jit(lambda x: x.copy(), backend="interpreter"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_writes_through_numpy_stay_with_their_tensor(name: str) -> None:
    make = OTHERS[name]
    outside = np.array([1, 2], np.float32)
    made = make(Tensor.from_numpy(outside))
    before = made.asnumpy().copy()
    outside[:] = 7
    assert (made.asnumpy() == before).all()
    x = Tensor([1.0, 2.0])
    view, made = x.asnumpy(), make(x)
    view[:] = 7
    assert (made.asnumpy() == before).all()
    for writes in (0, 1):
        x = Tensor([1.0, 2.0])
        pair = (x, make(x))
        pair[writes].asnumpy()[...] = 7
        assert 7 not in pair[1 - writes].asnumpy()


def test_results_are_the_callers_own() -> None:
    kept = Tensor([5.0, 6.0])

    def constants(x: Any) -> Any:
        made = Tensor([1.0, 2.0])
        return made, made, ops.ones(2), kept, x.copy(), x

    for run in (constants, msc.jit(constants, backend="interpreter"), msc.jit(constants)):
        for _ in range(3):
            x = Tensor([3.0, 4.0])
            found = run(x)
            assert [t.tolist() for t in found] == [[1, 2], [1, 2], [1, 1], [5, 6], [3, 4], [3, 4]]
            assert found[0] is found[1]
            assert found[3] is kept
            assert found[5] is x
            for tensor in (found[0], found[2], found[4]):
                tensor.asnumpy()[0] = 77
                tensor[1] = 88
            assert x.tolist() == [3, 4]


def test_compiled_models_give_arrays_of_their_own() -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x, x * 1, x[:]

    compiled = msc.compile(Net(), Tensor([1.0, 2.0]))
    given = np.array([3, 4], np.float32)
    first = compiled(given)
    for array in first:
        array[...] = 7
    assert given.tolist() == [3, 4]
    second = compiled(given)
    assert [array.tolist() for array in second] == [[3, 4]] * 3
    first[0][...] = 9
    assert [array.tolist() for array in second] == [[3, 4]] * 3
