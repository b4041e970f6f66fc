"""Operators whose places, starts and paddings the standard counts in its own way, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import NodeProto, TensorProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator

from msc.importers.onnx import import_proto
from msc.importers.onnx.operators.movement import places_of
from msc.interp import evaluate
from msc.support.diagnostics import MscError
from tests.unit.importers.agreement import agreed
from tests.unit.importers.models import model, node, tensor


def test_places_of_maxima_are_counted_over_the_whole_tensor() -> None:
    """Over images and channels, with padding, and by columns in two and three dimensions."""
    rng = np.random.default_rng(0)
    shapes = {"w": (2, 3, 9), "x": (2, 3, 4, 6), "y": (2, 2, 3, 4, 5)}
    windows = {"w": {"kernel_shape": [2]}, "x": {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 2]}}
    windows["y"] = {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1]}
    nodes, outputs = list[NodeProto](), list[ValueInfoProto]()
    for name, attributes in windows.items():
        for order in (0, 1):
            results = [f"{name}{order}", f"{name}{order}i"]
            nodes.append(node("MaxPool", [name], results, storage_order=order, **cast(Any, attributes)))
            outputs += [tensor(results[0], None), tensor(results[1], None, TensorProto.INT64)]
    made = model(nodes, [tensor(name, shape) for name, shape in shapes.items()], outputs)
    agreed(made, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})


@given(st.integers(0, 6), st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-3, -2, -1, 1, 2, 3]))
def test_a_slice_takes_the_places_that_the_standard_says(size: int, start: int, end: int, step: int) -> None:
    """Starts are clamped to [0, size - 1] and ends to [-1, size - 1] where the step is negative."""
    first, last = (n + size if n < 0 else n for n in (start, end))
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(first, 0), high)
    wanted = [*range(first, min(max(last, low), high), step)] if size else []
    assert [*range(*places_of(size, start, end, step))] == wanted


def test_a_slice_that_starts_before_the_first_place_and_runs_backwards_has_it() -> None:
    ends = {"s": np.array([-11]), "e": np.array([-20]), "a": np.array([0]), "t": np.array([-1])}
    made = model([node("Slice", ["x", *ends], ["y"])], [tensor("x", (10,))], [tensor("y", None)], ends)
    agreed(made, {"x": np.arange(10, dtype=np.float32)})


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_prelu_takes_integers(dtype: Any) -> None:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    made = model(
        [node("PRelu", ["x", "s"], ["y"])],
        [tensor("x", (5,), kind), tensor("s", (1,), kind)],
        [tensor("y", None, kind)],
    )
    x = np.array([-3, -1, 0, 2, 7]).astype(dtype)
    (found,) = evaluate(import_proto(made).module, [x, np.array([4], dtype)], {})
    np.testing.assert_array_equal(found, np.where(x < 0, x * dtype(4), x))


@pytest.mark.parametrize(("size", "kernel", "stride"), [(6, 1, 3), (5, 1, 3), (8, 2, 4), (4, 1, 4)])
def test_padding_of_pools_may_be_negative(size: int, kernel: int, stride: int) -> None:
    """SAME_UPPER says how long the output is, and so where windows begin, where strides pass over elements, too."""
    attributes: Any = {"kernel_shape": [kernel], "strides": [stride], "auto_pad": "SAME_UPPER"}
    made = model([node("MaxPool", ["x"], ["y"], **attributes)], [tensor("x", (1, 1, size))], [tensor("y", None)])
    x = np.arange(size, dtype=np.float32).reshape(1, 1, size)
    (wanted,) = cast(Any, ReferenceEvaluator(made)).run(None, {"x": x})
    (found,) = evaluate(import_proto(made).module, [x], {})
    np.testing.assert_array_equal(found, wanted)


def test_a_written_padding_is_not_negative() -> None:
    attributes: Any = {"kernel_shape": [2], "pads": [-1, 0]}
    made = model([node("MaxPool", ["x"], ["y"], **attributes)], [tensor("x", (1, 1, 9))], [tensor("y", None)])
    with pytest.raises(MscError, match="pads must be 0 or more"):
        import_proto(made)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_a_last_window_may_be_larger_than_the_image(operator: str) -> None:
    """With `ceil_mode` it begins in the image, and may be the only one."""
    attributes: Any = {"kernel_shape": [3, 2], "strides": [2, 3], "dilations": [1, 2], "ceil_mode": 1}
    made = model(
        [node(operator, ["x"], ["y"], **attributes)], [tensor("x", (1, 2, 2, 4))], [tensor("y", None)], opset=19
    )
    agreed(made, {"x": np.random.default_rng(0).standard_normal((1, 2, 2, 4)).astype(np.float32)})


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 4), (2, 1, 3, 4), (1, 3, 2, 3, 4), (2, 1, 2, 3, 4)])
def test_a_grid_is_the_affine_image_of_regular_places(sizes: tuple[int, ...], corners: int) -> None:
    made = model(
        [node("AffineGrid", ["theta", "size"], ["y"], align_corners=corners)],
        [tensor("theta", (sizes[0], len(sizes) - 2, len(sizes) - 1))],
        [tensor("y", None)],
        {"size": np.array(sizes)},
        opset=20,
    )
    theta = np.random.default_rng(0).standard_normal((sizes[0], len(sizes) - 2, len(sizes) - 1))
    agreed(made, {"theta": theta.astype(np.float32)})


def test_a_grid_needs_a_matrix_for_each_image() -> None:
    sizes = {"size": np.array([2, 1, 3, 4])}
    nodes, inputs = [node("AffineGrid", ["theta", "size"], ["y"])], [tensor("theta", (1, 2, 3))]
    made = model(nodes, inputs, [tensor("y", None)], sizes, opset=20)
    with pytest.raises(MscError, match="a grid of 2 images in 2 axes needs theta of 2x2x3") as raised:
        import_proto(made)
    assert raised.value.diagnostics[0].code == "MSC0711"


def test_integers_shrink_by_fractions() -> None:
    made = model(
        [node("Shrink", ["x"], ["y"], bias=1.5, lambd=-1.5)],
        [tensor("x", (7,), TensorProto.INT8)],
        [tensor("y", None, TensorProto.INT8)],
    )
    agreed(made, {"x": np.arange(-3, 4, dtype=np.int8)})


@pytest.mark.parametrize("operator", ["LpPool", "GlobalLpPool"])
def test_the_exponent_of_a_norm_is_one_or_more(operator: str) -> None:
    attributes: Any = {"p": 0} | ({"kernel_shape": [2]} if operator == "LpPool" else {})
    made = model([node(operator, ["x"], ["y"], **attributes)], [tensor("x", (1, 1, 6))], [tensor("y", None)])
    with pytest.raises(MscError, match="p is 0") as raised:
        import_proto(made)
    assert raised.value.diagnostics[0].code == "MSC0711"


def test_attributes_for_which_the_standard_has_no_function_body() -> None:
    attributes: Any = {"q_num_heads": 3, "kv_num_heads": 3, "softmax_precision": 0}
    shapes = {"q": (2, 4, 24), "k": (2, 6, 24), "v": (2, 6, 24)}
    inputs = [tensor(name, shape) for name, shape in shapes.items()]
    made = model([node("Attention", [*shapes], ["y"], **attributes)], inputs, [tensor("y", None)], opset=23)
    with pytest.raises(MscError, match="no result for these attributes and inputs") as raised:
        import_proto(made)
    assert raised.value.diagnostics[0].code == "MSC0710"


def test_gathers_and_resizes_of_tensors_without_elements() -> None:
    """A batch may be empty; then so is every axis that nothing is read of."""
    kinds = {"x": (TensorProto.FLOAT, (0, 3)), "i": (TensorProto.INT64, (0,)), "j": (TensorProto.INT64, (0, 3))}
    nodes = [
        node("Gather", ["x", "i"], ["gathered"]),
        node("GatherElements", ["x", "j"], ["elements"]),
        node("ReverseSequence", ["x", "i"], ["reversed"], batch_axis=0, time_axis=1),
        node("Unsqueeze", ["x", "first"], ["images"]),
        node("Resize", ["images", "", "scales"], ["scaled"], mode="linear"),
        node("Resize", ["images", "", "", "sizes"], ["sized"], mode="nearest"),
    ]
    constants = {
        "first": np.array([1, 3]),
        "scales": np.array([1, 1, 2, 1], np.float32),
        "sizes": np.array([0, 1, 5, 2]),
    }
    inputs = [tensor(name, shape, kind) for name, (kind, shape) in kinds.items()]
    outputs = [tensor(name, None) for name in ("gathered", "elements", "reversed", "scaled", "sized")]
    agreed(
        model(nodes, inputs, outputs, constants),
        {"x": np.zeros((0, 3), np.float32), "i": np.zeros(0, np.int64), "j": np.zeros((0, 3), np.int64)},
    )


@pytest.mark.parametrize("mode", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("width", [12, 14, 15, 16])
def test_a_transposed_convolution_gets_more_columns_at_the_end(mode: str, width: int) -> None:
    """Of its 14 columns some are cut off at both ends; more are zero, or the bias, and stand at the end."""
    attributes: Any = {"strides": [2, 3], "output_shape": [9, width], "auto_pad": mode}
    shapes = {"x": (1, 1, 4, 5), "w": (1, 1, 3, 2), "b": (1,)}
    inputs = [tensor(name, shape) for name, shape in shapes.items()]
    made = model([node("ConvTranspose", [*shapes], ["y"], **attributes)], inputs, [tensor("y", None)])
    rng = np.random.default_rng(0)
    agreed(made, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})


@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 1, 7), (1, 1, 3)])
def test_resized_integers_are_rounded_where_antialiased(sizes: tuple[int, ...], antialias: int) -> None:
    attributes: Any = {"mode": "linear", "antialias": antialias, "coordinate_transformation_mode": "asymmetric"}
    made = model(
        [node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)],
        [tensor("x", (1, 1, 5), TensorProto.UINT8)],
        [tensor("y", None, TensorProto.UINT8)],
        {"sizes": np.array(sizes)},
        opset=19,
    )
    agreed(made, {"x": np.array([[[0, 3, 10, 249, 2]]], np.uint8)})


def test_padding_has_no_place_where_every_element_is_the_least_of_its_type() -> None:
    made = model(
        [node("MaxPool", ["x"], ["y", "places"], kernel_shape=[3, 2], dilations=[1, 2], pads=[2, 1, 1, 1])],
        [tensor("x", (1, 2, 3, 4), TensorProto.UINT8)],
        [tensor("y", None, TensorProto.UINT8), tensor("places", None, TensorProto.INT64)],
    )
    agreed(made, {"x": np.zeros((1, 2, 3, 4), np.uint8)})


@pytest.mark.parametrize("operator", ["CumSum", "CumProd"])
def test_exclusive_sums_of_nothing(operator: str) -> None:
    """ONNX Runtime has no CumProd."""
    nodes = [node(operator, ["x", "axis"], ["y"], exclusive=1, reverse=1)]
    made = model(nodes, [tensor("x", (2, 0))], [tensor("y", None)], {"axis": np.array(1)}, opset=26)
    (found,) = evaluate(import_proto(made).module, [np.zeros((2, 0), np.float32)], {})
    assert found.shape == (2, 0)
