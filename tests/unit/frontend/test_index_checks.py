"""Indices and labels that are outside: compiled graphs refuse them as PyNative mode does, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Model, Tensor, nn, ops
from msc.dataset import Dataset, NumpySlicesDataset
from msc.support.arrays import Array
from msc.support.diagnostics import MscError

MODES = {"pynative": msc.PYNATIVE_MODE, "graph": msc.GRAPH_MODE}
TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)


def _by_matrix(x: Tensor, i: Tensor) -> Tensor:
    """An index that only much work shows."""
    return ops.gather(
        x, ops.matmul(ops.ones((1, 2), msc.float32), i.reshape((2, 1)).astype(msc.float32)).astype(msc.int32), 0
    )


def _in_loop(x: Tensor, i: Tensor) -> Tensor:
    total, k = x[0] * 0, Tensor(0, msc.int64)
    while k < i.sum() * 0 + 2:
        total = total + ops.gather(x, i, 0).sum(0)
        k = k + 1
    return total


GATHERS: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[int], list[int]]] = {
    "gather": (lambda x, i: ops.gather(x, i, 0), [4, -5], [1, 5]),
    "gather, other axis": (lambda x, i: ops.gather(x, i, 1), [3, 0], [4, 0]),
    "take": (lambda x, i: ops.gather(x, i.reshape((1, 2)).astype(msc.int64), 0), [4, 0], [0, -6]),
    "subscript": (lambda x, i: x[i], [4, 0], [5, 0]),
    "two subscripts": (lambda x, i: x[i, i], [3, 0], [1, 4]),
    "elements": (lambda x, i: ops.gather_elements(x, 0, ops.stack([i, i])), [4, 0], [0, 7]),
    "computed": (lambda x, i: ops.gather(x, i * 2 + 1, 0), [1, 0], [0, 2]),
    "sliced": (lambda x, i: ops.gather(x, i[:1], 0), [4, 9], [9, 4]),
    "by a product": (_by_matrix, [2, 2], [4, 3]),
    "in a loop": (_in_loop, [4, 0], [0, 5]),
    "clipped": (lambda x, i: ops.gather(x, ops.clamp(i, 0, 4), 0), [9, -9], []),
    "by a remainder": (lambda x, i: ops.gather(x, i % 5, 0), [9, -9], []),
    "where the largest stands": (lambda x, i: ops.gather(x, ops.argmax(x * i.sum(), 0), 0), [9, -9], []),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GATHERS)
def test_indices_outside_are_refused(mode: str, name: str) -> None:
    function, inside, outside = GATHERS[name]
    call = msc.jit(function) if mode == "graph" else function
    x = Tensor(TABLE)
    expected = function(x, Tensor(inside, msc.int32)).asnumpy()
    np.testing.assert_array_equal(call(x, Tensor(inside, msc.int32)).asnumpy(), expected)
    if outside:
        with pytest.raises(MscError, match=r"MSC0610|MSC0815"):
            call(x, Tensor(outside, msc.int32))
        np.testing.assert_array_equal(call(x, Tensor(inside, msc.int32)).asnumpy(), expected)


LOSSES: dict[str, tuple[Callable[[], nn.Cell], list[list[int]]]] = {
    "cross entropy": (nn.CrossEntropyLoss, [[0, 1, 2, 3], [0, -1, 2, 0]]),
    "sparse": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        [[0, 9, 1, 1], [1, 1, -100, 1]],
    ),
    "margin": (nn.MultiMarginLoss, [[0, 1, 2, 5]]),
    "focal": (nn.FocalLoss, [[0, 1, 3, 0]]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LOSSES)
def test_a_step_with_a_wrong_label_changes_nothing(mode: str, name: str) -> None:
    make, wrong = LOSSES[name]
    net = nn.Dense(4, 3)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, make()), nn.Adam(net.trainable_params(), 0.1)).set_train()
    x = Tensor(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))
    with msc.set_context(mode=MODES[mode]):
        step(x, Tensor([0, 1, 2, 0], msc.int32))
        before = {p.name: p.asnumpy() for p in step.get_parameters()}
        for labels in wrong:
            with pytest.raises(MscError, match=r"MSC0610.*label") as raised:
                step(x, Tensor(labels, msc.int32))
            place = next(k for k, label in enumerate(labels) if not 0 <= label < 3)
            assert f"{labels[place]} at [{place}]" in str(raised.value)
            for parameter in step.get_parameters():
                np.testing.assert_array_equal(parameter.asnumpy(), before[parameter.name])


@pytest.mark.parametrize("mode", MODES)
def test_ignored_labels_are_allowed(mode: str) -> None:
    loss = nn.CrossEntropyLoss(ignore_index=-1)
    logits = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    with msc.set_context(mode=MODES[mode]):
        some = loss(logits, Tensor([0, -1, 2, -1], msc.int32))
        rows = Tensor(logits.asnumpy()[[0, 2]])
        np.testing.assert_allclose(some.asnumpy(), loss(rows, Tensor([0, 2], msc.int32)).asnumpy(), rtol=1e-6)
        with pytest.raises(MscError, match="MSC0610"):
            loss(logits, Tensor([0, -2, 2, -1], msc.int32))


def batches(labels: Array) -> Dataset:
    x = np.random.default_rng(0).standard_normal((len(labels), 4)).astype(np.float32)
    return NumpySlicesDataset((x, labels.astype(np.int32)), ["x", "y"], shuffle=False).batch(4)


@pytest.mark.parametrize("sinks", [False, True])
def test_training_stops_at_the_step_with_the_wrong_label(sinks: bool) -> None:
    """The steps before it count, as without a compiled loop over the steps of a sink."""
    labels = np.zeros(64)
    labels[50] = 3
    weights: list[Array] = []
    for mode in MODES.values():
        msc.set_seed(1)
        net = nn.Dense(4, 3, weight_init="ones")
        model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics={"loss"})
        with msc.set_context(mode=mode):
            with pytest.raises(MscError, match="MSC0610"):
                model.train(1, batches(labels), dataset_sink_mode=sinks)
            weights.append(net.weight.asnumpy())
            with pytest.raises(MscError, match="MSC0610"):
                model.eval(batches(labels))
            model.train(1, batches(np.zeros(64)), dataset_sink_mode=sinks)
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5)
    assert not np.array_equal(weights[0], np.ones((3, 4)))


@pytest.mark.parametrize("shift", [0, 1])
def test_an_index_of_a_branch_is_refused_only_where_the_branch_runs(shift: int) -> None:
    table = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3))

    def chosen(table: Tensor, ids: Tensor, flag: Tensor) -> Tensor:
        y = table.sum(0)
        if flag > 0:
            y = ops.gather(table, ids + shift, 0).sum(0)
        return y

    compiled = msc.jit(chosen)
    inside, outside = (Tensor(np.array([0, last], np.int32)) for last in (3 - shift, 9))
    for ids, flag in ((inside, 1.0), (inside, -1.0), (outside, -1.0)):
        arguments = table, ids, Tensor(np.float32(flag))
        assert compiled(*arguments).asnumpy().tolist() == chosen(*arguments).asnumpy().tolist()
    with pytest.raises(msc.MscError, match="MSC0610"):
        compiled(table, outside, Tensor(np.float32(1)))


@pytest.mark.parametrize("value", [3, 2**61 - 1, 2**61, -(2**61) - 1, 2**63 - 1, -(2**63)])
def test_integers_of_tensors_have_any_number_of_bits(value: int) -> None:
    def computed(k: Tensor) -> tuple[int, int, int]:
        n = int(k)
        return n * 4, n**2 - 1, -n + n

    compiled = msc.jit(computed)
    for each in (Tensor(np.int64(2)), Tensor(np.int64(value))):
        assert compiled(each) == computed(each)


def test_a_part_of_a_split_graph_refuses_integers_of_more_than_64_bits() -> None:
    def split(k: Tensor) -> int:
        n = int(k) * 4
        return len(str(n))

    with pytest.raises(MscError, match="MSC0834"):
        msc.jit(split)(Tensor(np.int64(2**62)))
