"""Functions and methods against NumPy, in PyNative mode and captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
import msc.numpy as mnp
from msc import Tensor, ops

RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
Y = RNG.standard_normal((3, 4, 5)).astype(np.float32)
V = RNG.standard_normal(6).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
PLACES = np.array([[0, 2], [1, -1]])

Function = Callable[[Any], Any] | Callable[[Any, Any], Any]
Case = tuple[Function, Function, tuple[Any, ...]]

CASES: dict[str, Case] = {
    "add": (lambda x, y: x + y * 2 - 1, lambda x, y: x + y * 2 - 1, (X, Y)),
    "reflected": (lambda x: 2 - 1 / (3 + x * x), lambda x: 2 - 1 / (3 + x * x), (X,)),
    "floordiv": (lambda i: i // 4 + i % 4, lambda i: i // 4 + i % 4, (WHOLE,)),
    "true division of integers": (lambda i: i / 2, lambda i: (i / 2).astype(np.float32), (WHOLE,)),
    "rpow": (lambda x: 2**x, lambda x: np.float32(2) ** x, (X,)),
    "compare": (lambda x, y: (x > y) & ~(x > 1) | (y <= 0), lambda x, y: (x > y) & ~(x > 1) | (y <= 0), (X, Y)),
    "matmul": (lambda x, y: x @ y.swapaxes(1, 2), lambda x, y: x @ y.swapaxes(1, 2), (X, Y)),
    "vector products": (lambda v: v @ v, lambda v: v @ v, (V,)),
    "sum": (lambda x: x.sum(1) + x.sum((0, 2))[None], lambda x: x.sum(1)[:, :4] + x.sum((0, 2))[None], (X[:, :, :4],)),
    "mean": (lambda x: x.mean(axis=-1, keep_dims=True), lambda x: x.mean(-1, keepdims=True), (X,)),
    "max": (lambda x: x.max(axis=0) - x.min(), lambda x: x.max(0) - x.min(), (X,)),
    "std": (lambda x: x.std(1, ddof=1), lambda x: x.std(1, ddof=1), (X,)),
    "argmax": (lambda x: x.argmax(1), lambda x: x.argmax(1), (X,)),
    "argmin of all": (lambda x: ops.argmin(x), lambda x: x.argmin(), (X,)),
    "any": (lambda x: (x > 1).any(0), lambda x: (x > 1).any(0), (X,)),
    "cumsum": (lambda x: x.cumsum(1), lambda x: x.cumsum(1), (X,)),
    "cumprod": (lambda x: ops.cumprod(x, 1), lambda x: x.cumprod(1), (X,)),
    "cummax": (lambda x: ops.cummax(x, 1)[0], lambda x: np.maximum.accumulate(x, 1), (X,)),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), (X,)),
    "norm": (lambda x: ops.norm(x, dim=1), lambda x: np.sqrt((x**2).sum(1)), (X,)),
    "reshape": (lambda x: x.reshape(4, -1).T, lambda x: x.reshape(4, -1).T, (X,)),
    "transpose": (lambda x: x.transpose(2, 0, 1), lambda x: x.transpose(2, 0, 1), (X,)),
    "view and squeeze": (lambda x: x.view(1, 60).squeeze(0), lambda x: x.reshape(60), (X,)),
    "expand": (lambda v: v.expand_dims(0).broadcast_to((2, 6)), lambda v: np.broadcast_to(v, (2, 6)), (V,)),
    "flatten": (lambda x: x.flatten(start_dim=1), lambda x: x.reshape(3, 20), (X,)),
    "movedim": (lambda x: ops.movedim(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (X,)),
    "roll": (lambda x: ops.roll(x, (1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2)), (X,)),
    "flip": (lambda x: ops.flip(x, (0, 2)), lambda x: x[::-1, :, ::-1], (X,)),
    "rot90": (lambda x: ops.rot90(x, 3, (1, 2)), lambda x: np.rot90(x, 3, (1, 2)), (X,)),
    "repeat": (lambda v: v.repeat(2), lambda v: v.repeat(2), (V,)),
    "repeat along an axis": (lambda x: x.repeat(2, axis=1), lambda x: x.repeat(2, axis=1), (X,)),
    "tile": (lambda v: ops.tile(v, (2, 3)), lambda v: np.tile(v, (2, 3)), (V,)),
    "concat": (lambda x, y: ops.cat([x, y], axis=1), lambda x, y: np.concatenate([x, y], 1), (X, Y)),
    "stack": (lambda x, y: ops.stack((x, y), axis=-1), lambda x, y: np.stack([x, y], -1), (X, Y)),
    "split": (lambda x: ops.split(x, 3, axis=2)[1], lambda x: x[:, :, 3:], (X,)),
    "chunk": (lambda x: x.chunk(2, 1)[1], lambda x: x[:, 2:], (X,)),
    "where": (lambda x, y: ops.where(x > 0, x, y), lambda x, y: y + (x > 0) * (x - y), (X, Y)),
    "where with a number": (lambda x: ops.where(x > 0, x, 0), lambda x: np.maximum(x, 0), (X,)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), lambda x: np.where(x > 0, -1, x), (X,)),
    "clip": (lambda x: x.clip(-0.5, 0.5) + ops.clamp(x, max=0), lambda x: x.clip(-0.5, 0.5) + x.clip(None, 0), (X,)),
    "gather": (lambda x, p: ops.gather(x, p, 1), lambda x, p: np.take(x, p, 1), (X, PLACES)),
    "gather_elements": (
        lambda x, p: ops.gather_elements(x, 1, p),
        lambda x, p: np.take_along_axis(x, p, 1),
        (X[0], np.array([[3, 0], [1, 1], [2, 2], [0, 3]])),
    ),
    "one_hot": (lambda p: ops.one_hot(p, 4, 1.0, 0.0), lambda p: np.eye(4, dtype=np.float32)[p % 4], (PLACES[:1],)),
    "sort": (lambda x: ops.sort(x, 1)[0], lambda x: np.sort(x, 1), (X,)),
    "argsort": (lambda x: x.argsort(1, True), lambda x: np.argsort(-x, 1, kind="stable"), (X,)),
    "topk": (lambda x: ops.topk(x, 2)[0], lambda x: -np.sort(-x, -1)[..., :2], (X,)),
    "tril": (lambda x: x.tril(1), lambda x: np.tril(x, 1), (X,)),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), lambda x: x.diagonal(1, 1, 2), (X,)),
    "diag": (lambda v: ops.diag(v), np.diag, (V,)),
    "einsum": (lambda x, y: ops.einsum("bij,bkj->bik", x, y), lambda x, y: np.einsum("bij,bkj->bik", x, y), (X, Y)),
    "tensordot": (
        lambda x, y: ops.tensor_dot(x, y, 2),
        lambda x, y: np.tensordot(x, y, 2),
        (X, Y.transpose(1, 2, 0)),
    ),
    "cast": (lambda x: (x * 3).astype(msc.int32), lambda x: (x * 3).astype(np.int32), (X,)),
    "isclose": (lambda x: ops.isclose(x, x + 1e-7), lambda x: np.isclose(x, x + 1e-7), (X,)),
    "int": (lambda x: x[1], lambda x: x[1], (X,)),
    "ints": (lambda x: x[1, -1], lambda x: x[1, -1], (X,)),
    "slices": (lambda x: x[1:, :-1, ::2], lambda x: x[1:, :-1, ::2], (X,)),
    "negative steps": (lambda x: x[::-1, 3:0:-2], lambda x: x[::-1, 3:0:-2], (X,)),
    "ellipsis and None": (lambda x: x[..., None, 2], lambda x: x[..., None, 2], (X,)),
    "list": (lambda x: x[[2, 0]], lambda x: x[[2, 0]], (X,)),
    "tensor": (lambda x, p: x[p], lambda x, p: x[p], (X, PLACES)),
    "tensor behind a slice": (lambda x, p: x[:, p], lambda x, p: x[:, p], (X, PLACES)),
    "tensors side by side": (lambda x, p: x[:, p, p], lambda x, p: x[:, p, p], (X, PLACES)),
    "tensors apart": (lambda x, p: x[p, :, p], lambda x, p: x[p, :, p], (X, PLACES)),
    "tensor, int and None": (lambda x, p: x[None, 1, p], lambda x, p: x[None, 1, p], (X, PLACES)),
}


@pytest.mark.parametrize("captured", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", CASES)
def test_function(name: str, captured: bool) -> None:
    case: Any = CASES[name]
    function, reference, inputs = case

    def called(*args: Any) -> Any:
        return function(*args)

    run: Any = msc.jit(called, fullgraph=True, backend="interpreter") if captured else called
    result = run(*map(Tensor, inputs))
    expected = reference(*inputs)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=2e-5, atol=1e-5)
    assert result.shape == np.shape(expected)


def written(target: Any, change: Callable[[Any], None]) -> Any:
    copied = target + 0
    change(copied)
    return copied


def set_slice(x: Any) -> None:
    x[1, 1:3] = 7


def set_rows(x: Any) -> None:
    x[:, ::2] = x[:, 1:4] * 2


def set_last(x: Any) -> None:
    x[..., -1] = -1.0


def set_list(x: Any) -> None:
    x[[2, 0]] = x[[0, 2]] + 1


def set_number(x: Any) -> None:
    x[2, 3, 4] = 0.5


@pytest.mark.parametrize("captured", [False, True], ids=["pynative", "graph"])
@pytest.mark.parametrize("change", [set_slice, set_rows, set_last, set_list, set_number])
def test_item_assignment(change: Callable[[Any], None], captured: bool) -> None:
    x = np.concatenate([X, X[:, :2]], 1)[:, :5]

    def called(t: Any) -> Any:
        return written(t, change)

    run: Any = msc.jit(called, fullgraph=True, backend="interpreter") if captured else called
    given = Tensor(x)
    np.testing.assert_array_equal(run(given).asnumpy(), written(x.copy(), change))
    np.testing.assert_array_equal(given.asnumpy(), x)


def test_masks_in_pynative_mode() -> None:
    x = Tensor(X)
    np.testing.assert_array_equal(x[x > 0].asnumpy(), X[X > 0])
    places: Any = ops.nonzero(x > 1)
    np.testing.assert_array_equal(places.asnumpy(), np.argwhere(X > 1))
    np.testing.assert_array_equal(ops.masked_select(x, x > 0).asnumpy(), X[X > 0])
    x[x > 0] = 0
    np.testing.assert_array_equal(x.asnumpy(), np.minimum(X, 0))


def test_aliases_see_an_assignment_and_rebinding_changes_nothing_else() -> None:
    x = Tensor([1.0, 2.0])
    y = x
    y[0] = 5
    assert x.tolist() == [5, 2]
    z = x
    z += 1
    assert x.tolist() == [5, 2]
    assert (z - x).tolist() == [1, 1]


def test_keywords_of_other_releases() -> None:
    x: Any = Tensor(X)
    functions: Any = ops
    np.testing.assert_allclose(functions.sum(x, axis=1, keepdims=True).asnumpy(), X.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(functions.mean(input=x, dim=1).asnumpy(), X.mean(1), rtol=1e-5, atol=1e-6)


def test_scattering() -> None:
    x = np.zeros((3, 4), np.float32)
    index = np.array([[0, 1], [2, 3], [0, 1]])
    new = np.array([1, 2, 3], np.float32)
    added = ops.tensor_scatter_add(Tensor(x), Tensor(index), Tensor(new)).asnumpy()
    assert added[0, 1] == 4
    assert added[2, 3] == 2
    assert ops.tensor_scatter_update(Tensor(x), Tensor(index), Tensor(new)).asnumpy()[0, 1] == 3


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (lambda: mnp.tanh(2.0), np.tanh(np.float32(2))),
        (lambda: mnp.mean([[1, 2], [3, 4]], axis=0), [2, 3]),
        (lambda: mnp.concatenate(([1, 2], [3])), [1, 2, 3]),
        (lambda: mnp.where([True, False], 1, 2), [1, 2]),
        (lambda: mnp.linspace(0, 1, 3), [0, 0.5, 1]),
        (lambda: mnp.diff([1, 4, 9]), [3, 5]),
        (lambda: mnp.convolve([1.0, 2, 3], [0, 1, 0.5], "same"), np.convolve([1, 2, 3], [0, 1, 0.5], "same")),
        (lambda: mnp.tile([1, 2], 2), [1, 2, 1, 2]),
        (lambda: mnp.pad([1, 2], 1), [0, 1, 2, 0]),
        (lambda: mnp.average([1.0, 3.0], weights=[3, 1]), 1.5),
        (lambda: mnp.dot([[1, 2]], [3, 4]), [11]),
        (lambda: mnp.var(V, ddof=1), V.var(ddof=1)),
    ],
)
def test_numpy_names(ours: Callable[[], Any], expected: Any) -> None:
    np.testing.assert_allclose(ours().asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ops.repeat_interleave(Tensor([1.0, 2.0]), 1 << 40),
        lambda: ops.tile(Tensor([1.0, 2.0]), (1 << 45,)),
        lambda: ops.zeros((1 << 45,)),
        lambda: ops.adaptive_avg_pool1d(Tensor(np.ones((1, 1, 3), np.float32)), 1 << 45),
        lambda: mnp.arange(1 << 45),
    ],
)
def test_a_result_without_room_is_an_error_at_once(call: Callable[[], Any]) -> None:
    with pytest.raises(msc.MscError):
        call()


def test_no_matrix_of_negative_size() -> None:
    with pytest.raises(msc.MscError, match=r"MSC0203.*\(-1, 2\) has negative sizes"):
        ops.eye(-1, 2)


def test_differences_of_fewer_elements_than_times() -> None:
    assert mnp.diff([1.0, 2.0], 5).shape == (0,)


def test_random_numbers_follow_the_seed() -> None:
    msc.set_seed(5)
    first = ops.standard_normal((4,)).tolist()
    msc.set_seed(5)
    assert ops.standard_normal((4,)).tolist() == first
    dropped = ops.dropout(Tensor(np.ones(1000, np.float32)), 0.3).asnumpy()
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / 0.7], rtol=1e-6)
    assert 0.6 < dropped.mean() < 1.4
