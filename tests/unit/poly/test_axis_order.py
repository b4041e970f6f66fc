"""In which order internal arrays store their axes, in kernels written by hand."""

from __future__ import annotations

from xdsl.ir.affine import AffineExpr

from msc.poly.axis_order import with_axes_in_order
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement, Materialized
from msc.poly.scalar import Read

C, H, W = 3, 5, 7
c, h, w = dims(3)
LOGICAL, CHANNELS_LAST = [c, h, w], [h, w, c]


def copy(read: int, at: list[AffineExpr], written: int, to: list[AffineExpr]) -> KernelStatement:
    body = Read(read, affine_map(3, at), "f32")
    return KernelStatement((C, H, W), ("c", "h", "w"), written, affine_map(3, to), body, None, 0)


def copies(source: list[AffineExpr], target: list[AffineExpr], *, between: bool = False) -> KernelModel:
    """An input, two internal arrays of shape CxHxW and an output, each copied to the next one."""
    shapes = {id(LOGICAL): (C, H, W), id(CHANNELS_LAST): (H, W, C)}
    arrays = (
        Array(shapes[id(source)], "f32", "input"),
        Array(shapes[id(target)], "f32", "output"),
        *(Array((C, H, W), "f32", "internal") for _ in range(2)),
    )
    statements = (copy(0, source, 2, LOGICAL), copy(2, LOGICAL, 3, LOGICAL), copy(3, LOGICAL, 1, target))
    held = (Materialized(2, (1,), 0),) if between else ()
    return KernelModel(arrays, statements, ("copies",), materialized=held)


def test_internal_arrays_follow_the_inputs_and_outputs() -> None:
    model = with_axes_in_order(copies(CHANNELS_LAST, CHANNELS_LAST))
    assert [array.shape for array in model.arrays] == [(H, W, C)] * 4
    channels_last = affine_map(3, CHANNELS_LAST)
    assert all(index == channels_last for s in model.statements for _, index in s.accesses())


def test_a_kernel_in_the_order_of_its_tensors_stays_as_it_is() -> None:
    model = copies(LOGICAL, LOGICAL)
    assert with_axes_in_order(model) is model


def test_an_array_between_an_input_and_an_output_of_another_order_follows_its_neighbour() -> None:
    """The first follows the input, and the second the output: only the copy between them changes the order."""
    model = with_axes_in_order(copies(CHANNELS_LAST, LOGICAL))
    assert [array.shape for array in model.arrays] == [(H, W, C), (C, H, W), (H, W, C), (C, H, W)]


def test_an_array_whose_neighbours_disagree_stays_as_it_is() -> None:
    arrays = (
        Array((H, W, C), "f32", "input"),
        Array((C, H, W), "f32", "output"),
        Array((C, H, W), "f32", "internal"),
    )
    statements = (copy(0, CHANNELS_LAST, 2, LOGICAL), copy(2, LOGICAL, 1, LOGICAL))
    model = KernelModel(arrays, statements, ("transpose",))
    assert with_axes_in_order(model) is model


def test_what_lies_between_members_keeps_its_axes() -> None:
    """Blocks are cut along their numbers."""
    model = with_axes_in_order(copies(CHANNELS_LAST, LOGICAL, between=True))
    assert model.arrays[2].shape == (C, H, W)


def test_axes_of_one_element_stay_where_they_are() -> None:
    arrays = (
        Array((H, C), "f32", "input"),
        Array((H, C), "f32", "output"),
        Array((1, C, H, 1), "f32", "internal"),
    )
    zero, x, y = AffineExpr.constant(0), *dims(2)
    held, outside = affine_map(2, [zero, x, y, zero]), affine_map(2, [y, x])
    statements = (
        KernelStatement((C, H), ("x", "y"), 2, held, Read(0, outside, "f32"), None, 0),
        KernelStatement((C, H), ("x", "y"), 1, outside, Read(2, held, "f32"), None, 0),
    )
    assert with_axes_in_order(KernelModel(arrays, statements, ("copy",))).arrays[2].shape == (1, H, C, 1)
