"""Gradients where functions are special: every function of the library beside the recorded values of PyTorch.

`python -m tests.special_gradients` compares every form of a function in both modes and types.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from tests.special_gradients.cases import CASES, Case
from tests.special_gradients.evaluating import derivatives, direction_error, first_derivatives
from tests.special_gradients.excluded import EXCLUDED
from tests.special_gradients.graph_mode import compiled_together
from tests.special_gradients.table import differences, expected

TABLE = {dtype: expected(dtype) for dtype in ("float64", "float32")}
MODULES: dict[str, Any] = {"ops": ops, "nn": nn, "mnp": msc.numpy}


def public_names() -> set[str]:
    """Every public function, layer and method of the library, by its module's name."""
    made = {f"{place}.{name}" for place, module in MODULES.items() for name in module.__all__}
    return made | {f"a.{name}" for name in dir(Tensor) if not name.startswith("_")}


def compared_names() -> set[str]:
    return {name for case in CASES for text in case.ours for name in re.findall(r"\b(?:ops|nn|mnp|a)\.\w+", text)}


def record(name: str) -> object:
    """The function that a name is: methods, operators and further names of one function are one record."""
    place, _, last = name.partition(".")
    value: Any = getattr(MODULES.get(place, Tensor), last)
    return inspect.unwrap(getattr(value, "FUNCTION", value))


def test_every_public_name_is_compared_or_has_a_reason() -> None:
    known = compared_names() | EXCLUDED.keys()
    records = set(map(id, map(record, known)))
    assert {name for name in public_names() - known if id(record(name)) not in records} == set()
    assert EXCLUDED.keys() & compared_names() == set()
    assert EXCLUDED.keys() - public_names() == set()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives_are_those_of_the_table(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = derivatives(case.ours[0], case, "float64")
    assert differences(found, TABLE["float64"][case.name], "float64", case) == []


@pytest.mark.parametrize("case", [c for c in CASES if len(c.ours) > 1], ids=str)
def test_all_forms_of_a_function_have_its_gradient(case: Case) -> None:
    known = first_derivatives(case.ours[0], case, "float32")
    for text in case.ours[1:]:
        for a, b in zip(first_derivatives(text, case, "float32"), known, strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-6, err_msg=text)


@pytest.mark.parametrize("case", CASES[::5], ids=str)
def test_narrow_types_and_directions_agree(case: Case) -> None:
    found = derivatives(case.ours[0], case, "float32")
    assert differences(found, TABLE["float32"][case.name], "float32", case) == []
    assert direction_error(case.ours[0], case, "float32", found) is None


def test_graph_mode_agrees() -> None:
    """A graph of functions that have rules of their own; the command compares all."""
    texts = ("celu(a)", "hardswish(a)", "std(a, 1)", "norm(a, 3, 1)", "max(a, 1)[0]", "cross_entropy(a, b, reduction")
    chosen: list[tuple[str, Case]] = []
    for text in texts:
        chosen.append(next((t, c) for c in CASES for t in c.ours[:1] if t.startswith(f"ops.{text}")))
    for (text, case), found in zip(chosen, compiled_together(chosen, "float32"), strict=True):
        assert differences(found, TABLE["float32"][case.name], "float32", case) == [], text


@pytest.mark.parametrize("loss", [nn.BCEWithLogitsLoss, nn.SoftMarginLoss, nn.MultiLabelSoftMarginLoss])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_head_of_zeros_learns(loss: Any, is_compiled: bool) -> None:
    net = nn.Dense(2, 1, weight_init="zeros")
    x, labels = Tensor([[1.0, 2.0], [0.5, 1.0]]), Tensor([[1.0], [1.0]])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss()), nn.Momentum(net.trainable_params(), 0.5, 0.0))
    run: Any = msc.jit(step) if is_compiled else step
    losses = [float(np.asarray(run(x, labels))) for _ in range(20)]
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("size", [30.0, -30.0, 1e4, -1e4])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_saturated_example_leaves_weights_finite(size: float, label: float) -> None:
    net = nn.SequentialCell(nn.Dense(1, 1, weight_init="ones"), nn.Sigmoid())
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.BCELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.0))
    x, labels = Tensor([[size], [0.5]]), Tensor([[label], [1.0]])
    before = net[0].weight.asnumpy()
    for _ in range(3):
        step(x, labels)
    after = net[0].weight.asnumpy()
    assert np.all(np.isfinite(after))
    assert not np.array_equal(after, before)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "norm": lambda x: ops.norm(x, 2, 1),
    "std": lambda x: ops.std(x, 1),
    "normalize": ops.normalize,
    "cosine_similarity": lambda x: ops.cosine_similarity(x, Tensor([[1.0, 2.0], [2.0, 1.0]])),
    "cdist": lambda x: ops.cdist(x, x),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_row_of_zeros_leaves_weights_finite(function: Callable[[Tensor], Tensor]) -> None:
    net = nn.Dense(2, 2, has_bias=False)

    def loss(x: Tensor) -> Tensor:
        return function(net(x)).sum()

    gradients: Any = msc.grad(loss, None, net.trainable_params())(Tensor([[0.0, 0.0], [1.0, 2.0]]))
    assert all(np.all(np.isfinite(g.asnumpy())) for g in gradients)
