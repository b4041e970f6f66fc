"""Mistakes that people make with layers and functions: refused with a code, the user's line and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import MscError, Tensor, nn, ops
from msc.dataset import vision

X = Tensor(np.ones((3, 4), np.float32))
IMAGE = Tensor(np.ones((1, 1, 4, 4), np.float32))
CLASSES = Tensor(np.array([0, 1], np.int32))
WIDE = Tensor(np.ones((1, 4), np.float32))


class Foreign:
    """What another framework's tensor is like."""

    def numpy(self) -> Any:
        return np.ones((3, 4), np.float32)


Foreign.__name__ = "Tensor"
Foreign.__module__ = "torch"


class Forward(nn.Cell):
    def forward(self, x: Tensor) -> Tensor:
        return x


def assigned(value: Any) -> None:
    layer: Any = nn.Dense(4, 3)
    layer.weight = value


MISTAKES: dict[str, tuple[Callable[[], Any], str, str, str]] = {
    "too few classes": (lambda: ops.cross_entropy(X, CLASSES), "MSC0201", "must be (3,)", ""),
    "classes as a column of nll": (
        lambda: ops.cross_entropy(X, Tensor(np.ones((3, 1), np.int32))), "MSC0201", "must be (3,)", "squeeze(1)",
    ),
    "a method of another framework": (lambda: Forward()(X), "MSC0820", "no method 'construct'", "rename forward"),
    "a device": (lambda: cast(X).to("cuda:0"), "MSC0801", "'cuda:0'", "no devices"),
    "a path as parameters": (
        lambda: msc.load_param_into_net(nn.Dense(4, 3), cast("a.ckpt")), "MSC0831", "a dictionary", "load_checkpoint(",
    ),
    "a name of a neighbour": (lambda: cast(vision).Compose([]), "MSC0832", "Compose", "msc.dataset.transforms.Compose"),
    "channels last": (lambda: nn.Conv2d(4, 3, 1)(IMAGE), "MSC0201", "dimension 1, and the last one is 4", ""),
    "a mode as text": (lambda: msc.set_context(mode="graph"), "MSC0814", "mode is 'graph'", "msc.GRAPH_MODE"),
    "classes of nll": (lambda: ops.nll_loss(X, CLASSES), "MSC0201", "must be (3,)", ""),
    "classes as a column": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(X, Tensor(np.ones((3, 1), np.int32))),
        "MSC0201", "must be (3,)", "",
    ),
    "probabilities of one row": (lambda: ops.cross_entropy(X, WIDE), "MSC0201", "must be (3, 4)", ""),
    "rows of labels": (lambda: nn.SoftmaxCrossEntropyWithLogits()(X, WIDE), "MSC0201", "must be (3, 4)", ""),
    "labels that broadcast": (lambda: nn.BCELoss()(X, WIDE), "MSC0201", "must be (3, 4)", ""),
    "labels of logits": (lambda: nn.BCEWithLogitsLoss()(X, WIDE), "MSC0201", "must be (3, 4)", ""),
    "a reduction as weight": (
        lambda: nn.BCELoss(cast("mean")), "MSC0824", "weight is 'mean'", "BCELoss(weight, reduction)",
    ),
    "an array as weight": (lambda: nn.NLLLoss(cast(np.ones(4))), "MSC0824", "weight is an array", "(weight, ignore"),
    "a word as weight of positives": (
        lambda: nn.BCEWithLogitsLoss("mean", None, cast("sum")), "MSC0824", "pos_weight is 'sum'", "weight, pos_weight",
    ),
    "a reduction as margin": (lambda: nn.MarginRankingLoss(cast("sum")), "MSC0824", "margin is 'sum'", "(margin,"),
    "a reduction as sparse": (
        lambda: nn.SoftmaxCrossEntropyWithLogits(cast("mean")), "MSC0824", "sparse is 'mean'", "(sparse, reduction)",
    ),
    "a word as distance": (
        lambda: nn.TripletMarginWithDistanceLoss(cast("mean")), "MSC0824", "takes a function or None", "(distance",
    ),
    "a tensor as reduction": (lambda: nn.MSELoss(cast(X)), "MSC0824", "a Tensor of shape (3, 4)", "MSELoss("),
    "a root with a reduction": (lambda: cast(nn.RMSELoss)("mean"), "MSC0833", "takes 0 arguments", "RMSELoss()"),
    "a kernel as text": (lambda: nn.Conv2d(3, 4, cast("3")), "MSC0813", "one integer or 2", ""),
    "a padding of floats": (
        lambda: nn.Conv2d(3, 4, 3, pad_mode="pad", padding=cast((1.5, 1, 1, 1))),
        *("MSC0813", "one integer, 2 or 4", ""),
    ),
    "a kernel of floats": (lambda: nn.Conv2d(3, 4, cast((2.5, 2))), "MSC0813", "one integer or 2", ""),
    "no stride": (lambda: nn.Conv2d(3, 4, 3, stride=0), "MSC0824", "stride is 0", ""),
    "no window": (lambda: nn.MaxPool2d(0), "MSC0824", "kernel_size is 0", ""),
    "a step back": (lambda: nn.AvgPool2d(2, stride=-1), "MSC0824", "stride is -1", ""),
    "another framework's tensor": (lambda: nn.Dense(4, 3)(cast(Foreign())), "MSC0811", "a torch.Tensor", "msc.Tensor("),
    "a class as operand": (lambda: ops.relu(cast(nn.ReLU)), "MSC0811", "ReLU, a class", "ReLU()"),
    "a cell as operand": (lambda: ops.relu(cast(nn.ReLU())), "MSC0811", "a ReLU", "call the cell"),
    "made instead of called": (lambda: nn.ReLU(cast(X)), "MSC0824", "made with a Tensor", "ReLU()(x)"),
    "a class in a row": (lambda: nn.SequentialCell(nn.Dense(4, 4), nn.ReLU), "MSC0822", "the class ReLU", "ReLU()"),
    "a function in a row": (lambda: nn.SequentialCell(cast(len)), "MSC0822", "a builtin_function", ""),
    "a list that is called": (lambda: nn.CellList([nn.ReLU()])(X), "MSC0820", "is a list", "SequentialCell"),
    "an axis as a float": (lambda: X.sum(axis=cast(1.0)), "MSC0811", "an axis is an integer", ""),
    "a scattered row": (
        lambda: ops.tensor_scatter_update(X, Tensor(np.array([[5]])), Tensor(np.ones((1, 4), np.float32))),
        "MSC0815", "tensor_scatter_update", "",
    ),
    "steps": (lambda: ops.linspace(0, 1, -2), "MSC0203", "steps is -2", ""),
    "an option of jit": (lambda: msc.jit(fulgraph=True), "MSC0814", "'fulgraph'", "fullgraph"),
    "an axis between axes": (lambda: ops.softmax(X, axis=cast(1.5)), "MSC0203", "it must be an integer", ""),
    "an axis as text": (lambda: X.argmax(axis="last"), "MSC0203", "it must be an integer", ""),
    "a diagonal as text": (lambda: ops.tril(X, cast("a")), "MSC0203", "it must be an integer", ""),
    "axes as a list of words": (lambda: nn.LogSoftmax(cast([1, "b"]))(X), "MSC0203", "it must be an integer", ""),
    "a padding mode": (lambda: ops.pad(X, (1, 1), mode="reflec"), "MSC0203", "no mode 'reflec'", "reflect"),
    "half a pair": (lambda: ops.pad(X, (1,)), "MSC0203", "does not fit", "two amounts"),
    "64 bits": (lambda: nn.Dense(4, 3)(Tensor(np.ones((3, 4)))), "MSC0202", "f64 and f32", ".astype()"),
    "a weight of another shape": (lambda: assigned(np.ones((4, 3), np.float32)), "MSC0807", "(3, 4)", ""),
    "a number as weight": (lambda: assigned(2.0), "MSC0807", "(3, 4)", ""),
}  # fmt: skip


def cast(value: Any) -> Any:
    """For arguments of types that are wrong on purpose."""
    return value


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("mode", [msc.PYNATIVE_MODE, msc.GRAPH_MODE])
def test_mistakes_are_refused(mistake: str, mode: int) -> None:
    run, code, words, advice = MISTAKES[mistake]
    with msc.set_context(mode=mode), pytest.raises(MscError) as raised:
        run()
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.code, words in diagnostic.message) == (code, True), str(raised.value)
    assert advice in (diagnostic.help or "")
    assert diagnostic.location is not None
    assert diagnostic.location.file.endswith("test_mistakes.py")


def test_an_array_is_a_value_of_a_parameter() -> None:
    layer: Any = nn.Dense(4, 3)
    layer.weight = np.full((3, 4), 2.0)
    assert isinstance(layer.weight, msc.Parameter)
    np.testing.assert_allclose(layer(X).asnumpy() - layer.bias.asnumpy(), np.full((3, 3), 8.0), rtol=1e-6)


def test_sizes_of_numpy_are_sizes() -> None:
    side: Any = np.int64(2)
    assert ops.softmax(X, axis=side - 1).shape == (3, 4)
    assert nn.MaxPool2d(side, stride=side)(IMAGE).shape == (1, 1, 2, 2)
