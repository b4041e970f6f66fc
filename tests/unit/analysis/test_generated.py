"""Large constant values: kernels compute what few operations make of far smaller values, and all else is stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import msc
from msc.analysis import generated
from msc.analysis.properties import KERNELS, WEIGHTS_HOISTED
from msc.dialects.ms.structure import ParameterOp
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from tests.unit.graph_kernel.graphs import function, random_inputs, random_weights, results, run

SIZE = 600
PLACES = "%i = ms.iota {shape = [600, 1], dtype = i64}\n%j = ms.iota {shape = [1, 600], axis = 1, dtype = i64}\n"
COMPARED = f"{PLACES}%m = ms.less %i, %j\n"
CHOSEN = "%y = ms.select %m, %x, %z"


@pytest.fixture(autouse=True)
def _small_values_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "LARGEST_STORED", SIZE * SIZE - 1)


def module_of(body: str, parameters: str = "") -> ModuleOp:
    return function(f"%x: tensor<{SIZE}x{SIZE}xf32>, %z: tensor<f32>", body, parameters)


def hoisted(module: ModuleOp) -> list[str]:
    """The derived parameters, the same ones after another run; the graph computes the same and can be clustered."""
    after = run(module, HoistParameters())
    assert str(run(after, HoistParameters())) == str(after)
    assert not list(WEIGHTS_HOISTED.violations(after))
    assert not list(KERNELS.violations(run(after, ClusterKernels())))
    inputs, weights = random_inputs(module), random_weights(module)
    for expected, actual in zip(results(module, inputs, weights), results(after, inputs, weights), strict=True):
        np.testing.assert_array_equal(actual, expected)
    return [op.symbol for op in after.ops if isinstance(op, ParameterOp) and op.symbol != "w"]


def test_comparisons_of_all_pairs_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(COMPARED + CHOSEN)
    assert hoisted(module) == []
    monkeypatch.setattr(generated, "LARGEST_STORED", SIZE * SIZE)
    assert hoisted(module) == ["constant.less"]


@pytest.mark.parametrize(("width", "stored"), [(1, "w.neg"), (SIZE, "w.less")])
def test_operands_are_stored_where_they_are_far_smaller(width: int, stored: str) -> None:
    places, type_ = PLACES.replace("i64", "f32"), f"tensor<{SIZE}x{width}xf32>"
    body = f"{places}%w = ms.get_parameter @w : {type_}\n%k = ms.neg %w\n%m = ms.less %k, %j\n{CHOSEN}"
    assert hoisted(module_of(body, f"ms.parameter @w : {type_}")) == [stored]


def test_tables_of_tables_are_computed_together() -> None:
    body = f"{COMPARED}%n = ms.equal %i, %j\n%o = ms.logical_or %m, %n\n%y = ms.select %o, %x, %z"
    assert hoisted(module_of(body)) == []


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ("%y = ms.matmul %x, %d", "constant.sub"),
        ("%e = ms.exp %d\n%y = ms.mul %x, %e", "constant.exp"),
        ("%t = ms.transpose %d\n%y = ms.mul %x, %t", "constant.transpose"),
        ("".join(f"%d{n} = ms.mul %d{n - 1 or ''}, %d\n" for n in range(1, 9)) + "%y = ms.mul %x, %d8", "constant.mul"),
    ],
)
def test_what_takes_longer_to_compute_than_to_read_is_stored(body: str, stored: str) -> None:
    places = PLACES.replace("i64", "f32")
    assert hoisted(module_of(f"{places}%d = ms.sub %i, %j\n{body}")) == [stored]


def test_orders_by_comparisons_store_nothing_of_the_size_of_all_pairs(tmp_path: Path) -> None:
    path = tmp_path / "order.mir"
    order = f"%0 = ms.argsort %x : (tensor<{SIZE}xi16>) -> tensor<{SIZE}xi64>\nfunc.return %0 : tensor<{SIZE}xi64>"
    path.write_text(f"func.func @main(%x: tensor<{SIZE}xi16>) -> tensor<{SIZE}xi64> {{\n{order}\n}}\n")
    model = msc.compile(path, without=["argsort-by-keys"], use_cache=False)
    assert model.signature.weights_bytes + model.signature.workspace_bytes < SIZE * SIZE
    x = np.random.default_rng(1).integers(-50, 50, SIZE).astype(np.int16)
    np.testing.assert_array_equal(model(x), np.argsort(x, kind="stable"))
