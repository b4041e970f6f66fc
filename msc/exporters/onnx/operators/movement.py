"""Operations that move elements, and tensors made of indices."""

from __future__ import annotations

import numpy as np

from msc.dialects.arrays import numpy_dtype
from msc.dialects.ms.base import MsOp
from msc.exporters.onnx.operators.elementwise import result_type
from msc.exporters.onnx.writer import Writer, form, known_shape, no_form, shape


def _reshaped(w: Writer, op: MsOp, x: str) -> str:
    """To the shape of the result, of which one size may be open."""
    sizes = shape(op.results[0])
    if sizes.count(-1) > 1:
        raise no_form(op, "several sizes are open")
    return w("Reshape", x, w.ints(sizes), allowzero=1) if 0 in sizes else w("Reshape", x, w.ints(sizes))


for _name in ("reshape", "flatten"):
    form(_name)(_reshaped)


@form("squeeze", "expand_dims")
def _axes(w: Writer, op: MsOp, x: str) -> str:
    if op.name == "ms.squeeze":
        return w("Squeeze", x, *([w.ints(op.ints("axis"))] if op.ints("axis") else []))
    return w("Unsqueeze", x, w.ints(op.ints("axis")))


@form("transpose")
def _transpose(w: Writer, op: MsOp, x: str) -> str:
    perm = op.ints("perm") or tuple(reversed(range(len(op.shape(0)))))
    return w("Transpose", x, perm=list(perm))


@form("broadcast_to")
def _broadcast_to(w: Writer, op: MsOp, x: str) -> str:
    return w("Expand", x, w.ints([1 if n == -1 else n for n in op.ints("shape")]))


@form("concat")
def _concat(w: Writer, op: MsOp, *inputs: str) -> str:
    return w("Concat", *inputs, axis=op.int_("axis"))


@form("stack")
def _stack(w: Writer, op: MsOp, *inputs: str) -> str:
    axis = op.int_("axis") % (len(op.shape(0)) + 1)
    return w("Concat", *(w("Unsqueeze", x, w.ints([axis])) for x in inputs), axis=axis)


@form("split")
def _split(w: Writer, op: MsOp, x: str) -> list[str]:
    return w.many(len(op.results), "Split", x, w.ints(op.ints("sizes")), axis=op.int_("axis"))


@form("slice")
def _slice(w: Writer, op: MsOp, x: str) -> str:
    axes = range(len(op.shape(0)))
    steps = op.ints("strides") or (1,) * len(axes)
    ends = [_end(end, step) for end, step in zip(op.ints("end"), steps, strict=True)]
    return w("Slice", x, w.ints(op.ints("begin")), w.ints(ends), w.ints(axes), w.ints(steps))


def _end(end: int, step: int) -> int:
    """As Python's slices have it: of a backward one, what lies before the first element is far below zero."""
    return end if step > 0 or end >= 0 else max(end, -(1 << 62))


@form("reverse")
def _reverse(w: Writer, op: MsOp, x: str) -> str:
    axes = op.ints("axis")
    starts, ends, steps = [-1] * len(axes), [-(1 << 62)] * len(axes), [-1] * len(axes)
    return w("Slice", x, w.ints(starts), w.ints(ends), w.ints(axes), w.ints(steps))


@form("tile")
def _tile(w: Writer, op: MsOp, x: str) -> str:
    rank, times = len(op.shape(0)), op.ints("multiples")
    wider = w("Reshape", x, w.ints([*[1] * (len(times) - rank), *known_shape(op)])) if len(times) > rank else x
    return w("Tile", wider, w.ints([*[1] * (rank - len(times)), *times]))


@form("pad")
def _pad(w: Writer, op: MsOp, x: str) -> str:
    mode = op.word("mode")
    if mode not in ("constant", "edge", "reflect"):
        raise no_form(op, f"Pad of opset 18 has no mode '{mode}'")
    value = [w.scalar(op.real("value"), op.dtype(0))] if mode == "constant" else []
    return w("Pad", x, w.ints(op.ints("pad")), *value, mode=mode)


@form("gather")
def _gather(w: Writer, op: MsOp, x: str, indices: str) -> str:
    return w("Gather", x, _index(w, op, indices), axis=op.int_("axis"))


@form("gather_elements")
def _gather_elements(w: Writer, op: MsOp, x: str, indices: str) -> str:
    return w("GatherElements", x, _index(w, op, indices), axis=op.int_("axis"))


def _index(w: Writer, op: MsOp, indices: str, position: int = 1) -> str:
    """Indices of a type that ONNX takes."""
    from msc.exporters.onnx.operators.elementwise import as_type

    kind = op.dtype(position)
    return indices if kind in ("i32", "i64") else as_type(w, indices, kind, "i64")


@form("extract_slice")
def _entry(w: Writer, op: MsOp, x: str, index: str) -> str:
    return w("Gather", x, _index(w, op, index), axis=0)


@form("insert_slice")
def _insert_slice(w: Writer, op: MsOp, x: str, index: str, value: str) -> str:
    place = w("Reshape", w("Cast", index, to=7), w.ints([1, 1]))
    return w("ScatterND", x, place, w("Unsqueeze", value, w.ints([0])))


@form("one_hot")
def _one_hot(w: Writer, op: MsOp, indices: str) -> str:
    """OneHot of ONNX counts negative indices from the end: here they are outside, as those beyond the depth."""
    kind = np.array([op.plain("off_value"), op.plain("on_value")]).astype(numpy_dtype(result_type(op)))
    wide = w("Cast", indices, to=7)
    depth = w.constant(np.array(op.int_("depth"), np.int64))
    inside = w("Where", w("Less", wide, w.scalar(0, "i64")), depth, wide)
    return w("OneHot", inside, depth, w.constant(kind), axis=op.int_("axis"))


@form("iota")
def _iota(w: Writer, op: MsOp) -> str:
    sizes = shape(op.results[0])
    axis = op.int_("axis") % max(len(sizes), 1)
    line = np.arange(sizes[axis] if sizes else 1, dtype=np.int64).astype(numpy_dtype(result_type(op)))
    lying = w.constant(line.reshape([-1 if k == axis else 1 for k in range(len(sizes))]))
    return w("Expand", lying, w.ints(sizes))


@form("tril", "triu")
def _triangle(w: Writer, op: MsOp, x: str) -> str:
    diagonal = w.constant(np.array(op.int_("diagonal"), np.int64))
    return w("Trilu", x, diagonal, upper=int(op.name == "ms.triu"))


@form("resize_nearest")
def _resize_nearest(w: Writer, op: MsOp, x: str) -> str:
    sizes = shape(op.results[0])
    if -1 in sizes:
        raise no_form(op, "a size is open that it needs")
    words = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
    return w("Resize", x, "", "", w.ints(sizes), **words)


@form("depth_to_space")
def _depth_to_space(w: Writer, op: MsOp, x: str) -> str:
    return w("DepthToSpace", x, blocksize=op.int_("block_size"), mode=op.word("mode"))


@form("space_to_depth")
def _space_to_depth(w: Writer, op: MsOp, x: str) -> str:
    if op.word("mode") == "DCR":
        return w("SpaceToDepth", x, blocksize=op.int_("block_size"))
    (n, c, h, width), b = known_shape(op), op.int_("block_size")
    blocks = w("Reshape", x, w.ints([n, c, h // b, b, width // b, b]))
    return w("Reshape", w("Transpose", blocks, perm=[0, 1, 3, 5, 2, 4]), w.ints([n, c * b * b, h // b, width // b]))
