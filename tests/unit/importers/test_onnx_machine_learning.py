"""Operators of `ai.onnx.ml` on numbers: the interpreter and C give what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto
from onnx.helper import make_opsetid, np_dtype_to_tensor_dtype

from msc.importers.onnx import import_proto
from msc.support.diagnostics import MscError
from tests.unit.importers.agreement import agreed, normal
from tests.unit.importers.models import model, node, tensor

Array = NDArray[Any]
X = normal(9, 5)


def of(operator: str, x: Array, outputs: tuple[type[np.generic], ...] = (np.float32,), **attributes: Any) -> ModelProto:
    """A model of one operator over x."""
    names = [f"y{i}" for i in range(len(outputs))]
    made = model(
        [node(operator, ["x"], names, domain="ai.onnx.ml", **attributes)],
        [tensor("x", x.shape, np_dtype_to_tensor_dtype(x.dtype))],
        [tensor(n, None, np_dtype_to_tensor_dtype(np.dtype(t))) for n, t in zip(names, outputs, strict=True)],
    )
    made.opset_import.append(make_opsetid("ai.onnx.ml", 3))
    return made


def forest(seed: int, modes: tuple[str, ...], trees: int = 3, depth: int = 4) -> tuple[dict[str, list[Any]], list[Any]]:
    """Random trees as attributes, and the leaves as (tree, node)."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, float, str, int, int, int]] = []
    leaves: list[tuple[int, int]] = []

    def grow(tree: int, place: int, level: int) -> None:
        if level == depth or (level and rng.random() < 0.3):
            rows.append((tree, place, 0, 0.0, "LEAF", 0, 0, 0))
            leaves.append((tree, place))
            return
        left, right = 2 * place + 1, 2 * place + 2
        threshold = float(np.float32(rng.standard_normal()))
        missing = int(rng.random() < 0.5)
        rows.append((tree, place, int(rng.integers(5)), threshold, str(rng.choice(modes)), left, right, missing))
        grow(tree, left, level + 1)
        grow(tree, right, level + 1)

    for tree in range(trees):
        grow(tree, 0, 0)
    names = "treeids nodeids featureids values modes truenodeids falsenodeids missing_value_tracks_true".split()
    return {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}, leaves


def with_missing(x: Array) -> Array:
    x = x.copy()
    x[::4, ::2] = np.nan
    return x


LEQ = ("BRANCH_LEQ",)
ALL = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


@pytest.mark.parametrize(
    ("modes", "attributes"),
    [
        (LEQ, {}),
        (ALL, {"aggregate_function": "AVERAGE", "base_values": [0.5, -1.0]}),
        (LEQ, {"post_transform": "LOGISTIC"}),
        (("BRANCH_LT",), {"post_transform": "SOFTMAX"}),
    ],
)
def test_regression_by_trees(modes: tuple[str, ...], attributes: Mapping[str, Any]) -> None:
    nodes, leaves = forest(1, modes)
    targets = [(tree, leaf, i % 2) for i, (tree, leaf) in enumerate(leaves)]
    names = ("target_treeids", "target_nodeids", "target_ids")
    columns = dict(zip(names, map(list, zip(*targets, strict=True)), strict=True))
    weights = [float(w) for w in normal(len(leaves), seed=3)]
    made = of("TreeEnsembleRegressor", X, n_targets=2, target_weights=weights, **nodes, **columns, **attributes)
    agreed(made, {"x": with_missing(X)})


@pytest.mark.parametrize("post_transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(("classes", "spoken_of", "low"), [(3, 3, -1.0), (2, 1, 0.0), (2, 1, -1.0)])
def test_classification_by_trees(classes: int, spoken_of: int, low: float, post_transform: str) -> None:
    nodes, leaves = forest(2, LEQ)
    weights = np.random.default_rng(5).uniform(low, 0.4, len(leaves))
    made = of(
        *("TreeEnsembleClassifier", X, (np.int64, np.float32)),
        class_treeids=[tree for tree, _ in leaves],
        class_nodeids=[leaf for _, leaf in leaves],
        class_ids=[i % spoken_of for i in range(len(leaves))],
        class_weights=[float(w) for w in weights],
        classlabels_int64s=[10 * i + 3 for i in range(classes)],
        post_transform=post_transform,
        **nodes,
    )
    agreed(made, {"x": with_missing(X)})


def test_trees_that_are_none_are_told() -> None:
    nodes, leaves = forest(1, LEQ)
    columns: dict[str, Any] = {"target_treeids": [t for t, _ in leaves], "target_nodeids": [n for _, n in leaves]}
    columns |= {"target_ids": [0] * len(leaves), "target_weights": [1.0] * len(leaves)}
    inner = nodes["nodes_modes"].index("BRANCH_LEQ")
    for name, value in (("truenodeids", 999), ("truenodeids", 0), ("modes", "BRANCH"), ("featureids", 77)):
        changed = list(nodes[f"nodes_{name}"])
        changed[inner] = value
        made = of("TreeEnsembleRegressor", X, **{**nodes, f"nodes_{name}": changed}, **columns)
        with pytest.raises(MscError, match="MSC0711"):
            import_proto(made)


@pytest.mark.parametrize(
    ("rows", "labels", "post_transform"),
    [
        *((1, [4, 9], name) for name in ("NONE", "LOGISTIC")),
        *((rows, [1, 5, 2][:rows], name) for rows in (2, 3) for name in ("NONE", "LOGISTIC", "SOFTMAX")),
    ],
)
def test_linear_classification(rows: int, labels: list[int], post_transform: str) -> None:
    coefficients = [float(v) for v in normal(rows * 5, seed=7)]
    attributes: dict[str, Any] = {"coefficients": coefficients, "intercepts": [0.25] * rows}
    made = of(
        *("LinearClassifier", X, (np.int64, np.float32)),
        classlabels_ints=labels,
        post_transform=post_transform,
        **attributes,
    )
    agreed(made, {"x": X})


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_regression_by_support_vectors(kernel: str) -> None:
    made = of(
        *("SVMRegressor", X),
        kernel_type=kernel,
        kernel_params=[0.3, 0.5, 3.0],
        n_supports=4,
        support_vectors=[float(v) for v in normal(20, seed=8)],
        coefficients=[float(v) for v in normal(4, seed=9)],
        rho=[0.1],
    )
    agreed(made, {"x": X})


@pytest.mark.parametrize(
    ("operator", "x", "attributes", "result"),
    [
        ("LinearRegressor", X, {"coefficients": [0.5, 1, 2, -1, 3] * 2, "intercepts": [1.0, 2.0], "targets": 2}, "f"),
        ("Scaler", X, {"offset": [0.5, 1, 2, 3, 4], "scale": [2.0, 1, 1, 3, 0.5]}, "f"),
        ("Normalizer", np.abs(X), {"norm": "MAX"}, "f"),
        ("Normalizer", X, {"norm": "L1"}, "f"),
        ("Normalizer", X, {"norm": "L2"}, "f"),
        ("Binarizer", X, {"threshold": 0.3}, "f"),
        ("Imputer", with_missing(X), {"imputed_value_floats": [1.0, 2, 3, 4, 5], "replaced_value_float": np.nan}, "f"),
        ("Imputer", np.arange(10).reshape(2, 5), {"imputed_value_int64s": [7], "replaced_value_int64": 3}, "q"),
        ("OneHotEncoder", np.array([[1, 3], [5, 1]]), {"cats_int64s": [1, 3, 8], "zeros": 1}, "f"),
        ("LabelEncoder", np.array([5, 2, 9]), {"keys_int64s": [2, 5], "values_floats": [0.5, 1.5]}, "f"),
        (
            "LabelEncoder",
            np.array([np.nan, 1.0], np.float32),
            {"keys_floats": [1.0, np.nan], "values_int64s": [4, 6]},
            "q",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_preparation(operator: str, x: Array, attributes: Mapping[str, Any], result: str) -> None:
    agreed(of(operator, x, (np.dtype(result).type,), **attributes), {"x": x})


def test_names_of_classes_are_refused_in_words() -> None:
    made = of(
        *("LinearClassifier", X, (np.int64, np.float32)),
        classlabels_strings=["a", "b"],
        coefficients=[1.0] * 5,
        intercepts=[0.0],
    )
    with pytest.raises(MscError, match=r"MSC0711.*strings"):
        import_proto(made)
