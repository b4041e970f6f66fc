"""Operators of the domain `ai.onnx.ml` on numbers: ensembles of trees, linear and support vector models, preparation.

scikit-learn, LightGBM and XGBoost export these. Source: Operators-ml.md of ONNX, and for what it leaves open (two
classes with one score) ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from msc.dialects import ms
from msc.dialects.arrays import Array
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.linear import product
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue, Slot

learned = partial(importer, domain="ai.onnx.ml")

# Trees.

_COMPARISONS = {
    "BRANCH_LEQ": ms.LessEqualOp,
    "BRANCH_LT": ms.LessOp,
    "BRANCH_GTE": ms.GreaterEqualOp,
    "BRANCH_GT": ms.GreaterOp,
    "BRANCH_EQ": ms.EqualOp,
    "BRANCH_NEQ": ms.NotEqualOp,
}


@dataclass(frozen=True)
class _Forest:
    """All nodes of an ensemble in one table; a leaf is its own successor."""

    features: Array
    thresholds: Array
    modes: Sequence[str]
    successors: tuple[Array, Array]
    """Of each node where its comparison is false, and where it is true."""
    missing_is_true: Array
    roots: Array
    depth: int
    nodes: dict[tuple[int, int], int]
    """Row of the table by tree and node."""


def _forest(node: Node) -> _Forest:
    """The table of the attributes `nodes_*`. Raises MSC0711 for trees that are none."""
    trees, ids = node.ints("nodes_treeids"), node.ints("nodes_nodeids")
    rows = {key: row for row, key in enumerate(zip(trees, ids, strict=False))}
    count, modes = len(trees), node.words("nodes_modes")
    values = _reals(node, "nodes_values")
    columns = [node.ints(f"nodes_{name}") for name in ("featureids", "falsenodeids", "truenodeids")]
    if not count or len(rows) != count or any(len(c) != count for c in (modes, values, *columns)):
        raise node.failure("MSC0711", f"its attributes nodes_* do not describe {count} nodes of trees")
    features, if_false, if_true = columns
    leaf = np.array([mode == "LEAF" for mode in modes])
    unknown = sorted({mode for mode in modes if mode != "LEAF" and mode not in _COMPARISONS})
    if unknown:
        raise node.failure("MSC0711", f"nodes_modes has '{unknown[0][:40]}', which msc does not know")
    own = np.arange(count)
    try:
        sides = [
            np.array([row if leaf[row] else rows[trees[row], child] for row, child in enumerate(side)], np.int64)
            for side in (if_false, if_true)
        ]
    except KeyError as error:
        raise node.failure("MSC0711", f"a tree has no node {error.args[0][1]}, which another names") from None
    inner = own[~leaf]
    children = np.concatenate([side[inner] for side in sides])
    roots = own[~np.isin(own, children)]
    depth, level, reached = 0, roots, len(roots)
    while (level := level[~leaf[level]]).size and reached <= count:
        level = np.concatenate([side[level] for side in sides])
        depth, reached = depth + 1, reached + level.size
    if len(roots) != len(set(trees)) or reached != count:
        raise node.failure("MSC0711", "each of its trees must have one root, and one way to every node")
    missing = node.ints("nodes_missing_value_tracks_true") or [0] * count
    return _Forest(
        np.where(leaf, 0, features).astype(np.int64),
        np.where(leaf, 0, values),
        modes,
        (sides[0], sides[1]),
        np.array(missing, bool) & ~leaf,
        roots,
        depth,
        rows,
    )


def _reals(node: Node, name: str) -> Array:
    """An attribute of numbers, f32, or f64 as the one called `name_as_tensor`."""
    exact = node.tensor(f"{name}_as_tensor")
    return np.array(node.reals(name), np.float32) if exact is None else exact


def _leaves(node: Node, forest: _Forest, x: OnnxValue) -> OnnxValue:
    """The leaf of each row in each tree, [rows, trees]: all trees go down one level at a time."""
    rows, columns = node.shape_of(x)
    if forest.features.max(initial=0) >= columns:
        raise node.failure("MSC0711", f"a tree compares feature {forest.features.max()}, but {x.type} has {columns}")
    at = node(ms.BroadcastToOp, node.constant(forest.roots[None, :]), shape=[rows, len(forest.roots)])
    for _ in range(forest.depth):
        value = node(ms.GatherElementsOp, x, _chosen(node, forest.features, at), axis=1)
        true = _holds(node, forest, value, at)
        sides = [_chosen(node, side, at) for side in forest.successors]
        at = node(ms.SelectOp, true, sides[1], sides[0])
    return at


def _holds(node: Node, forest: _Forest, value: OnnxValue, at: OnnxValue) -> OnnxValue:
    """Whether the comparison of each node holds; a missing value (NaN) goes where the node says."""
    threshold = _chosen(node, forest.thresholds.astype(_numpy_of(value)), at)
    inner = [mode for mode in forest.modes if mode != "LEAF"]
    first, *others = sorted(set(inner))
    true = node(_COMPARISONS[first], value, threshold)
    for mode in others:
        is_mode = _chosen(node, np.array([m == mode for m in forest.modes]), at)
        true = node(ms.SelectOp, is_mode, node(_COMPARISONS[mode], value, threshold), true)
    if not forest.missing_is_true.any():
        return true
    missing = node(ms.LogicalAndOp, node(ms.NotEqualOp, value, value), _chosen(node, forest.missing_is_true, at))
    return node(ms.LogicalOrOp, true, missing)


def _chosen(node: Node, table: Array, at: OnnxValue) -> OnnxValue:
    """The rows of a table at the places `at`."""
    return node(ms.GatherOp, node.constant(table), at, axis=0)


def _numpy_of(value: OnnxValue) -> np.dtype[np.floating]:
    return np.dtype(np.float64 if value.dtype == "f64" else np.float32)


def _floating(node: Node, x: OnnxValue) -> OnnxValue:
    return x if x.dtype == "f64" else node.cast(x, "f32")


def _votes(
    node: Node, forest: _Forest, at: OnnxValue, what: str, columns: Sequence[int], count: int
) -> tuple[OnnxValue, OnnxValue | None]:
    """What the leaves say of each column, [rows, columns], by `aggregate_function`; and of which they say something.

    The latter is None if that is all of them: some tree has each column in all its leaves.
    """
    weights = _reals(node, f"{what}_weights")
    table = np.zeros((len(forest.features), count), weights.dtype)
    says = np.zeros(table.shape, bool)
    places = zip(node.ints(f"{what}_treeids"), node.ints(f"{what}_nodeids"), columns, weights, strict=True)
    for tree, leaf, column, weight in places:
        if (tree, leaf) not in forest.nodes or not 0 <= column < count:
            raise node.failure("MSC0711", f"it has no node {leaf} in tree {tree}, or no column {column}")
        row = forest.nodes[tree, leaf]
        table[row, column] += weight
        says[row, column] = True
    said = _chosen(node, table, at)
    kind = node.choice("aggregate_function", "SUM", ("SUM", "AVERAGE", "MIN", "MAX"))
    operation = {"MIN": ms.ReduceMinOp, "MAX": ms.ReduceMaxOp}.get(kind, ms.ReduceSumOp)
    votes = node(operation, said, axis=[1])
    votes = node(ms.DivOp, votes, float(len(forest.roots))) if kind == "AVERAGE" else votes
    trees = np.array([tree for tree, _ in forest.nodes])
    leaves = np.array([mode == "LEAF" for mode in forest.modes])
    always = [says[leaves & (trees == tree)].all(axis=0) for tree in np.unique(trees)]
    if np.any(always, axis=0).all():
        return votes, None
    some = node(ms.ReduceMaxOp, node.cast(_chosen(node, says, at), "i32"), axis=[1])
    return votes, node(ms.GreaterOp, some, 0)


def _with_base(node: Node, scores: OnnxValue, some: OnnxValue | None) -> OnnxValue:
    """The scores and the base values; 0 where no leaf says anything, as in ONNX Runtime."""
    base = _reals(node, "base_values")
    if not base.size:
        return scores
    moved = node(ms.AddOp, scores, node.constant(base.astype(_numpy_of(scores))))
    return moved if some is None else node(ms.SelectOp, some, moved, 0.0)


@learned("TreeEnsembleRegressor")
def _tree_ensemble_regressor(node: Node) -> OnnxValue:
    forest, count = _forest(node), node.int_("n_targets", 1)
    at = _leaves(node, forest, _floating(node, node[0]))
    votes = _with_base(node, *_votes(node, forest, at, "target", node.ints("target_ids"), count))
    return node.cast(_transformed(node, votes), "f32")


@learned("TreeEnsembleClassifier")
def _tree_ensemble_classifier(node: Node) -> list[Slot]:
    """The class of each row and the scores of all; of two classes the trees may speak of one only."""
    forest, labels = _forest(node), _labels(node)
    at = _leaves(node, forest, _floating(node, node[0]))
    columns, weights = node.ints("class_ids"), _reals(node, "class_weights")
    if len(labels) == 2 and len(set(columns)) == 1:
        votes, _ = _votes(node, forest, at, "class", [0] * len(columns), 1)
        base = _reals(node, "base_values")
        if base.size:
            votes = node(ms.AddOp, votes, float(base[-1]))
        positive = bool((weights >= 0).all())
        return _of_two(node, votes, labels, 0.5 if positive else 0.0, complement=positive)
    votes, some = _votes(node, forest, at, "class", columns, len(labels))
    return _of_many(node, _with_base(node, votes, some), labels, some)


def _labels(node: Node) -> Array:
    """The numbers of the classes. Raises MSC0711 for names: msc has no strings."""
    for name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
        if name == "classlabels_strings" and node.words(name):
            raise node.failure(
                "MSC0711",
                "its classes are strings, which msc does not compute on",
                help="train with integers as labels, or export the scores alone",
            )
        if numbers := node.ints(name):
            return np.array(numbers, np.int64)
    raise node.failure("MSC0711", "it names no classes")


def _of_two(node: Node, score: OnnxValue, labels: Array, threshold: float, *, complement: bool) -> list[Slot]:
    """Label and scores of two classes of which one has a score, [rows, 1].

    The other's is what is left of 1, or the negative.
    """
    rows = node.size_of(score, 0)
    chosen = node.cast(node.reshape(node(ms.GreaterOp, score, threshold), (rows,)), "i64")
    label = node(ms.GatherOp, node.constant(labels), chosen, axis=0)
    negative = node(ms.NegOp, score)
    if node.word("post_transform", "NONE") == "LOGISTIC":
        both = [node(ms.SigmoidOp, negative), node(ms.SigmoidOp, score)]
    else:
        both = [node(ms.AddOp, negative, 1.0) if complement else negative, score]
    return [label, node.cast(node(ms.ConcatOp, *both, axis=1), "f32")]


def _of_many(node: Node, scores: OnnxValue, labels: Array, some: OnnxValue | None = None) -> list[Slot]:
    """The class of the highest score, among those of which there is `some`, and all scores."""
    rated = scores if some is None else node(ms.SelectOp, some, scores, -np.inf)
    best = node.cast(node(ms.ArgmaxOp, rated, axis=1), "i64")
    label = node(ms.GatherOp, node.constant(labels), best, axis=0)
    return [label, node.cast(_transformed(node, scores), "f32")]


def _transformed(node: Node, scores: OnnxValue) -> OnnxValue:
    """The scores under `post_transform`."""
    kind = node.choice("post_transform", "NONE", ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"))
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node(ms.SigmoidOp, scores)
    if kind == "SOFTMAX":
        return node(ms.SoftmaxOp, scores, axis=-1)
    highest = node(ms.ReduceMaxOp, scores, axis=[-1], keep_dims=True)
    powers = node(ms.ExpOp, node(ms.SubOp, scores, highest))
    some = node(ms.GreaterOp, node(ms.AbsOp, scores), 1e-7)
    total = node(ms.ReduceSumOp, node(ms.SelectOp, some, powers, 0.0), axis=[-1], keep_dims=True)
    small = node(ms.MulOp, scores, node(ms.ExpOp, node(ms.NegOp, highest)))
    return node(ms.DivOp, node(ms.SelectOp, some, powers, small), total)


# Linear models and support vectors.


def _linear(node: Node, columns: int) -> OnnxValue:
    x = _floating(node, node[0])
    coefficients = np.array(node.reals("coefficients"), _numpy_of(x))
    features = node.size_of(x, 1)
    if coefficients.size != columns * features:
        raise node.failure("MSC0711", f"it has {coefficients.size} coefficients for {columns} sums of {features}")
    y = product(node, x, node.constant(np.ascontiguousarray(coefficients.reshape(columns, features).T)))
    intercepts = np.array(node.reals("intercepts"), _numpy_of(x))
    return node(ms.AddOp, y, node.constant(intercepts)) if intercepts.size else y


@learned("LinearRegressor")
def _linear_regressor(node: Node) -> OnnxValue:
    return node.cast(_transformed(node, _linear(node, node.int_("targets", 1))), "f32")


@learned("LinearClassifier")
def _linear_classifier(node: Node) -> list[Slot]:
    """Of two classes, there may be the scores of one."""
    labels = _labels(node)
    sums = len(node.reals("coefficients")) // max(node.size_of(node[0], 1), 1)
    scores = _linear(node, sums)
    return _of_two(node, scores, labels, 0.0, complement=True) if sums == 1 else _of_many(node, scores, labels)


def _kernel(node: Node, x: OnnxValue, vectors: Array) -> OnnxValue:
    """The kernel of each row with each support vector, [rows, vectors]."""
    gamma, constant, degree = (*node.reals("kernel_params"), 0.0, 0.0, 0.0)[:3]
    kind = node.choice("kernel_type", "LINEAR", ("LINEAR", "POLY", "RBF", "SIGMOID"))
    if kind == "RBF":
        shape = (1, *vectors.shape)
        rows, columns = node.shape_of(x)
        apart = node(ms.SubOp, node.reshape(x, (rows, 1, columns)), node.constant(vectors.reshape(shape)))
        return node(ms.ExpOp, node(ms.MulOp, node(ms.ReduceSumOp, node(ms.SquareOp, apart), axis=[2]), -gamma))
    dot = product(node, x, node.constant(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dot
    inner = node(ms.AddOp, node(ms.MulOp, dot, gamma), constant)
    return node(ms.TanhOp, inner) if kind == "SIGMOID" else node(ms.PowOp, inner, degree)


@learned("SVMRegressor")
def _svm_regressor(node: Node) -> OnnxValue:
    """A weighted sum of kernels; of one class its sign."""
    x, count = _floating(node, node[0]), node.int_("n_supports", 0)
    coefficients, rho = np.array(node.reals("coefficients"), np.float32), (*node.reals("rho"), 0.0)[0]
    if count:
        vectors = np.array(node.reals("support_vectors"), np.float32).reshape(count, -1)
        y = product(node, _kernel(node, x, vectors), node.constant(coefficients.reshape(count, 1)))
    else:
        y = product(node, x, node.constant(coefficients.reshape(-1, 1)))
    y = node(ms.AddOp, y, rho)
    if node.flag("one_class"):
        return node(ms.SelectOp, node(ms.GreaterOp, y, 0.0), node.scalar(1, y.dtype), node.scalar(-1, y.dtype))
    return y


# Preparation of features.


@learned("Scaler")
def _scaler(node: Node) -> OnnxValue:
    x = node.cast(node[0], "f32")
    offset, scale = (np.array(node.reals(name), np.float32) for name in ("offset", "scale"))
    return node(ms.MulOp, node(ms.SubOp, x, node.constant(offset)), node.constant(scale))


@learned("Normalizer")
def _normalizer(node: Node) -> OnnxValue:
    """Each row by its norm; a row of norm 0 stays."""
    x = node.cast(node[0], "f32")
    kind = node.choice("norm", "MAX", ("MAX", "L1", "L2"))
    if kind == "MAX":
        norm = node(ms.ReduceMaxOp, x, axis=[-1], keep_dims=True)
    elif kind == "L1":
        norm = node(ms.ReduceSumOp, node(ms.AbsOp, x), axis=[-1], keep_dims=True)
    else:
        norm = node(ms.SqrtOp, node(ms.ReduceSumOp, node(ms.SquareOp, x), axis=[-1], keep_dims=True))
    divisor = node(ms.SelectOp, node(ms.EqualOp, norm, 0.0), node.scalar(1, "f32"), norm)
    return node(ms.DivOp, x, divisor)


@learned("Binarizer")
def _binarizer(node: Node) -> OnnxValue:
    return node.cast(node(ms.GreaterOp, node[0], node.real("threshold", 0.0)), node[0].dtype)


@learned("Imputer")
def _imputer(node: Node) -> OnnxValue:
    """The value of each column where one is missing: NaN, or the number that stands for it."""
    x = node[0]
    if x.dtype[0] == "f":
        missing_value, given = node.real("replaced_value_float", 0.0), np.array(node.reals("imputed_value_floats"))
    else:
        missing_value, given = node.int_("replaced_value_int64", 0), np.array(node.ints("imputed_value_int64s"))
    is_nan = missing_value != missing_value
    missing = node(ms.NotEqualOp, x, x) if is_nan else node(ms.EqualOp, x, missing_value)
    values = node.cast(node.constant(given), x.dtype)
    return node(ms.SelectOp, missing, values, x)


@learned("FeatureVectorizer")
def _feature_vectorizer(node: Node) -> OnnxValue:
    values = [node.cast(value, "f32") for value in node.tensors()]
    return values[0] if len(values) == 1 else node(ms.ConcatOp, *values, axis=1)


@learned("ArrayFeatureExtractor")
def _array_feature_extractor(node: Node) -> OnnxValue:
    """Columns of the last axis."""
    x, places = node[0], node[1]
    y = node(ms.GatherOp, x, node.reshape(places, (math.prod(node.shape_of(places)),)), axis=x.rank - 1)
    return node.reshape(y, (1, *y.shape)) if x.rank == 1 else y


@learned("OneHotEncoder")
def _one_hot_encoder(node: Node) -> OnnxValue:
    """A last axis of categories; a value that is none of them has zeros."""
    if node.words("cats_strings"):
        raise node.failure("MSC0711", "its categories are strings, which msc does not compute on")
    x, categories = node[0], np.array(node.ints("cats_int64s"), np.int64)
    numbers = node.reshape(node.cast(x, "i64"), (*node.shape_of(x), 1))
    return node.cast(node(ms.EqualOp, numbers, node.constant(categories)), "f32")


_KINDS = {"int64s": np.int64, "floats": np.float32}


@learned("LabelEncoder")
def _label_encoder(node: Node) -> OnnxValue:
    """Numbers by a table; one that is not in it becomes the default. NaN finds NaN since version 4."""
    keys, values = _table(node, "keys"), _table(node, "values")
    if keys is None or values is None or keys.shape != values.shape or not keys.size:
        raise node.failure("MSC0711", "msc reads tables from numbers to numbers only, with a value for each key")
    x = node[0]
    at = node.reshape(x, (*node.shape_of(x), 1))
    same = node(ms.EqualOp, at, node.constant(keys.astype(np.int64 if x.dtype[0] == "i" else np.float32)))
    if node.opset >= 4 and x.dtype[0] == "f" and np.isnan(keys).any():
        nan = node.constant(np.isnan(keys))
        same = node(ms.LogicalOrOp, same, node(ms.LogicalAndOp, node(ms.NotEqualOp, at, at), nan))
    place = node(ms.ArgmaxOp, node.cast(same, "i32"), axis=-1)
    found = node(ms.ReduceMaxOp, node.cast(same, "i32"), axis=[-1])
    default = node.tensor("default_tensor")
    if default is not None:
        other = default.reshape(-1)[0]
    else:
        other = node.int_("default_int64", -1) if values.dtype == np.int64 else node.real("default_float", -0.0)
    chosen = node(ms.GatherOp, node.constant(values), place, axis=0)
    fallback = node.scalar(float(other) if chosen.dtype[0] == "f" else int(other), chosen.dtype)
    return node(ms.SelectOp, node(ms.GreaterOp, found, 0), chosen, fallback)


def _table(node: Node, name: str) -> Array | None:
    tensor = node.tensor(f"{name}_tensor")
    if tensor is not None:
        return tensor.reshape(-1) if tensor.dtype.kind in "iuf" else None
    if node.given(f"{name}_int64s"):
        return np.array(node.ints(f"{name}_int64s"), np.int64)
    return np.array(node.reals(f"{name}_floats"), np.float32) if node.given(f"{name}_floats") else None


@learned("ZipMap")
def _zip_map(node: Node) -> OnnxValue:
    """Scores as they are, one column a class, instead of a list of dictionaries."""
    return node[0]
