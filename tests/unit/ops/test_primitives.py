"""Operators as objects, and primitives that users declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops
from msc.ops import Primitive, PrimitiveWithCheck, PrimitiveWithInfer, prim_attr_register

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((1, 2, 5, 5)).astype(np.float32)


def t(array: Any) -> Tensor:
    return Tensor(array)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("operator", "inputs", "expected"),
    [
        (ops.Add(), (X, X), X + X),
        (ops.AddN(), ([t(X), t(X), t(X)],), 3 * X),
        (ops.RealDiv(), (X, 2.0), X / 2),
        (ops.FloorDiv(), (X, 0.5), np.floor(X / 0.5)),
        (ops.Mod(), (np.array([-7, 7]), np.array([3, -3])), [-1, 1]),
        (ops.FloorMod(), (np.array([-7, 7]), np.array([3, -3])), [2, -2]),
        (ops.Pow(), (np.abs(X), 2.5), np.abs(X) ** 2.5),
        (ops.SquaredDifference(), (X, 1.0), (X - 1) ** 2),
        (ops.MatMul(transpose_b=True), (X, X), X @ X.T),
        (ops.BatchMatMul(True), (X[None], X[None]), (X.T @ X)[None]),
        (ops.BiasAdd(), (X, X[0]), X + X[0]),
        (ops.Softmax(), (X,), softmax(X)),
        (ops.Softmax(axis=(-1,)), (X,), softmax(X)),
        (ops.LogSoftmax(1), (X,), np.log(softmax(X))),
        (ops.ReduceSum(keep_dims=True), (X, 1), X.sum(1, keepdims=True)),
        (ops.ReduceSum(), (X, ()), X.sum()),
        (ops.ReduceMean(), (X, (0, 1)), X.mean()),
        (ops.ReduceMax(), (X, 0), X.max(0)),
        (ops.ReduceAll(), (X > 0, 0), (X > 0).all(0)),
        (ops.Argmax(), (X,), X.argmax(-1)),
        (ops.CumSum(exclusive=True), (X, 0), np.cumsum(X, 0) - X),
        (ops.CumProd(reverse=True), (X, 1), np.cumprod(X[:, ::-1], 1)[:, ::-1]),
        (ops.Reshape(), (X, (4, 3)), X.reshape(4, 3)),
        (ops.Transpose(), (X, (1, 0)), X.T),
        (ops.ExpandDims(), (X, 0), X[None]),
        (ops.Squeeze(0), (X[None],), X),
        (ops.Flatten(), (IMAGE,), IMAGE.reshape(1, -1)),
        (ops.Concat(1), ((t(X), t(X)),), np.concatenate([X, X], 1)),
        (ops.Stack(), ([t(X), t(X)],), np.stack([X, X])),
        (ops.StridedSlice(), (X, (0, 1), (3, 4), (2, 1)), X[0:3:2, 1:4]),
        (ops.StridedSlice(begin_mask=2, shrink_axis_mask=1), (X, (1, 1), (2, 3), (1, 1)), X[1, :3]),
        (ops.Slice(), (X, (1, 0), (2, 3)), X[1:3, :3]),
        (ops.Tile(), (X, (2, 1)), np.tile(X, (2, 1))),
        (ops.BroadcastTo((2, 3, 4)), (X,), np.broadcast_to(X, (2, 3, 4))),
        (ops.Gather(), (X, np.array([2, 0]), 0), X[[2, 0]]),
        (ops.GatherD(), (X, 1, np.array([[0], [1], [3]])), np.take_along_axis(X, np.array([[0], [1], [3]]), 1)),
        (ops.GatherNd(), (X, np.array([[0, 1], [2, 3]])), X[[0, 2], [1, 3]]),
        (ops.ScatterNd(), (np.array([[1], [1]]), X[:2], (3, 4)), np.stack([0 * X[0], X[0] + X[1], 0 * X[0]])),
        (ops.ReverseV2([1]), (X,), X[:, ::-1]),
        (ops.MaskedFill(), (X, X > 0, 0.0), np.where(X > 0, 0, X)),
        (ops.FillV2(), ((2, 3), 5), np.full((2, 3), 5)),
        (ops.Tril(), (X,), np.tril(X)),
        (ops.Pad(((1, 0), (0, 2))), (X,), np.pad(X, ((1, 0), (0, 2)))),
        (ops.MirrorPad("SYMMETRIC"), (X, ((1, 1), (2, 0))), np.pad(X, ((1, 1), (2, 0)), "symmetric")),
        (ops.OneHot(), (np.array([0, 2]), 3, t(np.float32(2)), t(np.float32(-1))), [[2, -1, -1], [-1, -1, 2]]),
        (ops.Select(), (X > 0, X, -X), np.abs(X)),
        (ops.Cast(), (X, msc.int32), X.astype(np.int32)),
        (ops.MaxPool(2, 2), (IMAGE,), IMAGE[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max((3, 5))),
        (ops.AvgPool(2, 2), (IMAGE,), IMAGE[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).mean((3, 5))),
        (ops.Conv2D(3, 1), (IMAGE, np.ones((3, 2, 1, 1), np.float32)), np.repeat(IMAGE.sum(1, keepdims=True), 3, 1)),
        (ops.L2Loss(), (X,), (X**2).sum() / 2),
        (ops.SigmoidCrossEntropyWithLogits(), (X, X * 0), np.log1p(np.exp(X))),
        (ops.UnsortedSegmentSum(), (X, np.array([0, 1, 0]), 2), np.stack([X[0] + X[2], X[1]])),
        (ops.ReverseSequence(1), (X, np.array([2, 1, 4])), np.stack([X[0][[1, 0, 2, 3]], X[1], X[2][::-1]])),
        (ops.Range(), (0, 6, 2), [0, 2, 4]),
    ],
)
def test_operator(operator: Any, inputs: tuple[Any, ...], expected: Any) -> None:
    given = [Tensor(v) if type(v) is np.ndarray else v for v in inputs]
    np.testing.assert_allclose(operator(*given).asnumpy(), expected, rtol=2e-6, atol=1e-6)


def test_operators_with_several_results() -> None:
    values, places = ops.TopK()(t(X), 2)
    np.testing.assert_array_equal(values.asnumpy(), np.sort(X)[:, :-3:-1])
    assert places.dtype is msc.int32
    place, value = ops.ArgMaxWithValue(1)(t(X))
    np.testing.assert_array_equal(value.asnumpy(), X.max(1))
    np.testing.assert_array_equal(place.asnumpy(), X.argmax(1))
    y, mean, variance = ops.LayerNorm()(t(X), t(np.ones(4, np.float32)), t(np.zeros(4, np.float32)))
    np.testing.assert_allclose(y.asnumpy(), (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True), rtol=1e-4)
    assert mean.shape == variance.shape == (3, 1)
    assert [p.shape for p in ops.Split(1, 2)(t(X))] == [(3, 2), (3, 2)]
    loss, gradient = ops.SoftmaxCrossEntropyWithLogits()(t(X), t(softmax(X)))
    assert loss.shape == (3,)
    np.testing.assert_allclose(gradient.asnumpy(), 0 * X, atol=1e-6)


def test_operators_keep_their_attributes() -> None:
    operator = ops.MatMul(transpose_b=True).shard(((4, 1), (1, 1)))
    assert operator.name == "MatMul"
    assert operator.attrs == {"transpose_a": False, "transpose_b": True, "in_strategy": operator.in_strategy}
    assert operator.transpose_b
    assert operator.in_strategy == ((4, 1), (1, 1)) == ops.MatMul().set_strategy(((4, 1), (1, 1))).in_strategy


class Softmax(PrimitiveWithInfer):
    """A seed's primitive, which has the name of an operator and no implementation of its own."""

    @prim_attr_register
    def __init__(self, axis: Any = -1) -> None:
        self.init_prim_io_names(inputs=["x"], outputs=["output"])
        if isinstance(axis, int):
            self.add_prim_attr("axis", (axis,))

    def infer_shape(self, x: Any) -> Any:
        return x

    def infer_dtype(self, x: Any) -> Any:
        return x


class Twice(PrimitiveWithCheck):
    @prim_attr_register
    def __init__(self, factor: int = 2) -> None:
        """A primitive on arrays."""

    def check_shape(self, x: Any) -> None:
        if len(x) != 1:
            raise ValueError("a vector")

    def vm_impl(self, x: Any) -> Any:
        return x * self.attrs["factor"]


class Nothing(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self) -> None:
        """A primitive that cannot run."""


class Liar(PrimitiveWithInfer):
    @prim_attr_register
    def __init__(self) -> None:
        """A primitive that says another shape than it gives."""

    def infer_shape(self, x: Any) -> Any:
        return [*x, 1]

    def construct(self, x: Tensor) -> Tensor:
        return x + 1


def test_primitives_of_users() -> None:
    primitive = Softmax()
    assert primitive.attrs == {"axis": (-1,), "input_names": ["x"], "output_names": ["output"]}
    np.testing.assert_allclose(primitive(t(X)).asnumpy(), softmax(X), rtol=1e-6)
    assert Twice(3)(Tensor([1.0, 2.0])).tolist() == [3, 6]
    with pytest.raises(ValueError, match="a vector"):
        Twice()(t(X))


def same(x: Any) -> Any:
    return x


def doubled(x: Any) -> Any:
    return x * 2


def both(x: Any) -> Any:
    return x, x + 1


def first(x: Any) -> Any:
    return x[:1]


def test_custom_operators() -> None:
    double = ops.Custom(doubled, same, same, func_type="pyfunc")
    assert double(Tensor([1.0, 2.0])).tolist() == [2, 4]
    assert [y.tolist() for y in ops.Custom(both, func_type="pyfunc")(Tensor([1.0]))] == [[1], [2]]


def wrong_custom() -> Any:
    return ops.Custom(first, same, same, func_type="pyfunc")(Tensor([1.0, 2.0]))


def test_calls_are_told_of_by_the_name_of_the_operator() -> None:
    for made in (ops.Div(), ops.RealDiv(), ops.Conv2D(3, 2)):
        with pytest.raises(msc.MscError, match=f"{type(made).__name__} needs '\\w+'"):
            made(t(X))
    volume, weights = t(np.zeros((1, 2, 4, 4, 4), np.float32)), t(np.zeros((4, 2, 2, 2, 2), np.float32))
    with pytest.raises(msc.MscError, match="Conv3D: out_channel is 3"):
        ops.Conv3D(3, 2)(volume, weights)


@pytest.mark.parametrize(
    ("code", "expression"),
    [
        ("MSC0815", lambda: Tensor([1, 2])[3]),
        ("MSC0815", lambda: Tensor([1, 2])["a"]),
        ("MSC0826", lambda: nn.CellList([nn.ReLU()])[1]),
        ("MSC0826", lambda: nn.CellDict({"a": nn.ReLU()})["b"]),
        ("MSC0827", lambda: Nothing()(t(X))),
        ("MSC0827", lambda: Liar()(t(X))),
        ("MSC0828", lambda: ops.MatMul(transposeb=True)),
        ("MSC0828", lambda: ops.MatMul(1, 2, 3)),
        ("MSC0828", lambda: ops.BroadcastTo()),
        ("MSC0829", lambda: ops.Custom("a.so:f", func_type="pyfunc")),
        ("MSC0829", lambda: ops.Custom(f"{__file__}.so:f", [1], msc.float32, "aot")(Tensor(1.0))),
        ("MSC0829", wrong_custom),
        ("MSC0807", lambda: ops.Assign()(Tensor(1.0), Tensor(2.0))),
    ],
)
def test_mistakes(code: str, expression: Callable[[], object]) -> None:
    with pytest.raises(msc.MscError) as caught:
        expression()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.location is not None
    assert Path(diagnostic.location.file) == Path(__file__)


def test_assignments_change_parameters() -> None:
    parameter = Parameter(Tensor([1.0, 2.0]), name="p")
    ops.Assign()(parameter, Tensor([3.0, 4.0]))
    ops.AssignAdd()(parameter, Tensor([1.0, 1.0]))
    ops.assign_sub(parameter, Tensor([2.0, 2.0]))
    assert parameter.tolist() == [2, 3]
    assert isinstance(ops.Add(), Primitive)


SURFACE: dict[str, Any] = dict(vars(ops))
OPERATORS = sorted(n for n, v in SURFACE.items() if isinstance(v, type) and hasattr(v, "FUNCTION"))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_show_what_they_take(name: str) -> None:
    """An operator's signature is that of its function, as far as objects hold its arguments; help shows both."""
    kind: Any = SURFACE[name]
    taken = inspect.signature(kind).parameters
    formal = inspect.signature(kind.FUNCTION).parameters
    assert set(taken) <= set(formal)
    assert kind.__doc__ == kind.FUNCTION.__doc__
    if all(p.default is not p.empty for p in taken.values()):
        assert kind().attrs == {p.name: p.default for p in taken.values()}
    else:
        with pytest.raises(msc.MscError, match="MSC0828"):
            kind()
