"""What moves elements: shapes, transpositions, parts, borders; of quantised numbers, their integers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from msc.dialects import ms
from msc.importers.tflite.integers import centred, codes, has_codes, limited, rescaled, result_codes
from msc.importers.tflite.node import TfliteNode, TfliteValue
from msc.importers.tflite.operators.activations import activated, limits_only
from msc.importers.tflite.registry import importer


@importer("RESHAPE")
def _reshape(node: TfliteNode) -> TfliteValue:
    x, options = node[0], node.options("ReshapeOptions")
    if node.get(1) is not None and node[1].array is not None:
        wanted = node.ints(1, "shape")
    elif options.NewShapeLength():
        wanted = [int(n) for n in options.NewShapeAsNumpy()]
    else:
        wanted = list(node.output().shape)
    count = math.prod(x.shape)
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        wanted[wanted.index(-1)] = count // rest if rest else 0
    if min(wanted, default=0) < 0 or math.prod(wanted) != count:
        raise node.failure("MSC0711", f"a {x.type} has no shape {'x'.join(map(str, wanted))}")
    return node.reshape(x, wanted)


@importer("SQUEEZE")
def _squeeze(node: TfliteNode) -> TfliteValue:
    x, options = node[0], node.options("SqueezeOptions")
    given = [int(a) for a in options.SqueezeDimsAsNumpy()] if options.SqueezeDimsLength() else []
    axes = [node.axis(a, x.rank) for a in given] or [a for a, n in enumerate(x.shape) if n == 1]
    if any(x.shape[a] != 1 for a in axes):
        raise node.failure("MSC0711", f"an axis of a {x.type} that it leaves out has not the size 1")
    return node.reshape(x, [n for a, n in enumerate(x.shape) if a not in axes])


@importer("EXPAND_DIMS")
def _expand_dims(node: TfliteNode) -> TfliteValue:
    x = node[0]
    axis = node.axis(node.int_(1, "axis"), x.rank + 1)
    return node.reshape(x, [*x.shape[:axis], 1, *x.shape[axis:]])


@importer("TRANSPOSE")
def _transpose(node: TfliteNode) -> TfliteValue:
    x, perm = node[0], node.ints(1, "order of axes")
    perm = [node.axis(a, x.rank) for a in perm]
    if sorted(perm) != list(range(x.rank)):
        raise node.failure("MSC0711", f"{perm} is no order of the axes of a {x.type}")
    return node.transpose(x, perm)


@importer("CONCATENATION")
def _concatenation(node: TfliteNode) -> TfliteValue:
    """Of quantised numbers, those of another scale than the result's are scaled."""
    options, values = node.options("ConcatenationOptions"), node.tensors()
    axis, activation = node.axis(int(options.Axis()), values[0].rank), int(options.FusedActivationFunction())
    layout = node.layout(*values)
    parts = [layout.take(v) for v in values]
    if not has_codes(values[0]):
        y = node(ms.ConcatOp, *parts, axis=layout.axis(axis))
        return layout.give(activated(node, y, activation) if activation else y)
    result = result_codes(node)
    for index, part in enumerate(parts):
        given = codes(node, index)
        if given.scale != result.scale or given.zero != result.zero:
            parts[index] = requantized(node, part, index)
    y = node(ms.ConcatOp, *parts, axis=layout.axis(axis))
    return layout.give(limited(node, y, *result.limits(limits_only(node, activation))))


def requantized(node: TfliteNode, x: TfliteValue, index: int = 0) -> TfliteValue:
    """Integers of an input's scale as those of the output's."""
    given, result = codes(node, index), result_codes(node)
    real = float(given.scale) / float(result.scale)
    return rescaled(node, centred(node, x, given.zero), real, zero=result.zero, dtype=result.dtype)


@importer("SPLIT", "SPLIT_V")
def _split(node: TfliteNode) -> Sequence[TfliteValue]:
    if node.record.name == "SPLIT":
        x, axis = node[1], node.axis(node.int_(0, "axis"), node[1].rank)
        count = int(node.options("SplitOptions").NumSplits())
        if count < 1 or x.shape[axis] % count or count > len(node.outputs):
            raise node.failure("MSC0711", f"axis {axis} of a {x.type} has not {count} equal parts")
        sizes = [x.shape[axis] // count] * count
    else:
        x, axis = node[0], node.axis(node.int_(2, "axis"), node[0].rank)
        sizes = node.ints(1, "sizes")
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    layout = node.layout(x)
    parts = node.many(ms.SplitOp, layout.take(x), axis=layout.axis(axis), sizes=sizes)
    return [layout.give(part) for part in parts]


def _sliced(node: TfliteNode, x: TfliteValue, begin: list[int], end: list[int], strides: list[int]) -> TfliteValue:
    layout = node.layout(x)
    places = {name: layout.order(v) for name, v in (("begin", begin), ("end", end), ("strides", strides))}
    return layout.give(node(ms.SliceOp, layout.take(x), **places))


@importer("SLICE")
def _slice(node: TfliteNode) -> TfliteValue:
    x, begin, size = node[0], node.ints(1, "begin"), node.ints(2, "size")
    if not len(begin) == len(size) == x.rank:
        raise node.failure("MSC0711", f"begin and size have {len(begin)} and {len(size)} numbers for a {x.type}")
    end = [n if s == -1 else b + s for n, b, s in zip(x.shape, begin, size, strict=True)]
    if any(not 0 <= b <= e <= n for n, b, e in zip(x.shape, begin, end, strict=True)):
        raise node.failure("MSC0711", f"from {begin}, {size} elements do not lie in a {x.type}")
    return _sliced(node, x, begin, end, [1] * x.rank)


@importer("STRIDED_SLICE")
def _strided_slice(node: TfliteNode) -> TfliteValue:
    """With masks, bit by axis: where a bound is left out, an axis is taken at one place, or axes are put in."""
    x, options = node[0], node.options("StridedSliceOptions")
    begin, end, strides = (node.ints(k, what) for k, what in ((1, "begin"), (2, "end"), (3, "strides")))
    masks = options.BeginMask(), options.EndMask(), options.EllipsisMask(), options.NewAxisMask()
    begin_mask, end_mask, ellipsis, new = (int(m) for m in masks)
    shrink, offset = int(options.ShrinkAxisMask()), bool(options.Offset())
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        raise node.failure("MSC0711", "its begin, end and strides differ in number, or a stride is 0")
    places: list[tuple[int, int, int]] = []
    shape: list[int | None] = []
    missing = x.rank - sum(not (new >> k & 1 or ellipsis >> k & 1) for k in range(len(begin)))
    for k, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        if ellipsis >> k & 1:
            for _ in range(max(missing, 0)):
                shape.append(len(places))
                places.append((0, x.shape[len(places)], 1))
            missing = 0
        elif new >> k & 1:
            shape.append(None)
        else:
            if len(places) >= x.rank:
                raise node.failure("MSC0711", f"it names more axes than a {x.type} has")
            n = x.shape[len(places)]
            if shrink >> k & 1:
                at = b + n if b < 0 else b
                if not 0 <= at < n:
                    raise node.failure("MSC0711", f"place {b} is outside an axis of {n}")
                places.append((at, at + 1, 1))
                continue
            e = b + e if offset else e
            first = (0 if s > 0 else n - 1) if begin_mask >> k & 1 else b
            last = (n if s > 0 else -n - 1) if end_mask >> k & 1 else e
            shape.append(len(places))
            places.append((first, last, s))
    while len(places) < x.rank:
        shape.append(len(places))
        places.append((0, x.shape[len(places)], 1))
    part = _sliced(node, x, *(list(each) for each in zip(*places, strict=True))) if places else x
    wanted = [1 if axis is None else part.shape[axis] for axis in shape]
    return node.reshape(part, wanted)


@importer("PAD", "PADV2")
def _pad(node: TfliteNode) -> TfliteValue:
    """Quantised numbers are surrounded by their zero point, which is the real 0, if nothing else is said."""
    x, amounts = node[0], node.known(1, "padding")
    if amounts.shape != (x.rank, 2):
        raise node.failure("MSC0711", f"its padding is {amounts.shape}, for a {x.type}")
    value: float = 0
    if len(node) > 2 and node.get(2) is not None:
        value = float(node.known(2, "padding value").reshape(-1)[0])
    elif has_codes(x):
        value = result_codes(node).zero
    layout = node.layout(x)
    begin, end = (layout.order([int(n) for n in amounts[:, k]]) for k in (0, 1))
    return layout.give(node(ms.PadOp, layout.take(x), pad=[*begin, *end], value=value))


@importer("MIRROR_PAD")
def _mirror_pad(node: TfliteNode) -> TfliteValue:
    """Reflected at the last element or, symmetrically, behind it."""
    x, amounts = node[0], node.known(1, "padding")
    if amounts.shape != (x.rank, 2):
        raise node.failure("MSC0711", f"its padding is {amounts.shape}, for a {x.type}")
    mode = "symmetric" if int(node.options("MirrorPadOptions").Mode()) == 1 else "reflect"
    layout = node.layout(x)
    y = layout.take(x)
    for axis, (begin, end) in enumerate(amounts):
        n, most = x.shape[axis], max(int(begin), int(end))
        if min(begin, end) < 0 or most > (n if mode == "symmetric" else n - 1):
            raise node.failure("MSC0711", f"{most} elements beside axis {axis} of a {x.type} are more than it has")
        if most:
            places = np.pad(np.arange(n, dtype=np.int64), (int(begin), int(end)), mode=mode)
            y = node(ms.GatherOp, y, node.constant(places), axis=layout.axis(axis))
    return layout.give(y)


@importer("PACK")
def _pack(node: TfliteNode) -> TfliteValue:
    values = node.tensors()
    return node(ms.StackOp, *values, axis=node.axis(int(node.options("PackOptions").Axis()), values[0].rank + 1))


@importer("UNPACK")
def _unpack(node: TfliteNode) -> Sequence[TfliteValue]:
    x = node[0]
    axis = node.axis(int(node.options("UnpackOptions").Axis()), x.rank)
    parts = node.many(ms.SplitOp, x, axis=axis, sizes=[1] * x.shape[axis])
    return [node.reshape(part, [n for a, n in enumerate(part.shape) if a != axis]) for part in parts]


@importer("TILE")
def _tile(node: TfliteNode) -> TfliteValue:
    layout = node.layout(node[0])
    times = node.ints(1, "numbers of repetitions")
    if len(times) != node[0].rank:
        raise node.failure("MSC0711", f"it repeats {len(times)} axes of a {node[0].type}")
    return layout.give(node(ms.TileOp, layout.take(node[0]), multiples=layout.order(times)))


@importer("BROADCAST_TO")
def _broadcast_to(node: TfliteNode) -> TfliteValue:
    return node(ms.BroadcastToOp, node[0], shape=node.ints(1, "shape"))


@importer("REVERSE_V2")
def _reverse(node: TfliteNode) -> TfliteValue:
    axes = [node.axis(a, node[0].rank) for a in node.ints(1, "axes")]
    return node(ms.ReverseOp, node[0], axis=axes)


@importer("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def _blocks(node: TfliteNode) -> TfliteValue:
    x, name = node[0], node.record.name
    operation = ms.SpaceToDepthOp if name == "SPACE_TO_DEPTH" else ms.DepthToSpaceOp
    size = int(node.options("SpaceToDepthOptions" if name == "SPACE_TO_DEPTH" else "DepthToSpaceOptions").BlockSize())
    if x.rank != 4:
        raise node.failure("MSC0711", f"its image is a {x.type}: of 4 axes")
    return node.last(node(operation, node.first(x), block_size=size))


@importer("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def _batches(node: TfliteNode) -> TfliteValue:
    """Blocks of pixels become images of the batch, or the other way round; padded before or cut after."""
    x, block, amounts = node[0], node.ints(1, "block shape"), node.known(2, "padding")
    count = len(block)
    if amounts.shape != (count, 2) or x.rank < count + 1 or min(block, default=1) < 1 or amounts.min(initial=0) < 0:
        raise node.failure("MSC0711", f"its block and its padding do not fit a {x.type}")
    batch, inner, rest = x.shape[0], x.shape[1 : count + 1], list(x.shape[count + 1 :])
    if node.record.name == "SPACE_TO_BATCH_ND":
        value = float(result_codes(node).zero) if has_codes(x) else 0.0
        begin, end = ([0, *(int(n) for n in amounts[:, k]), *(0 for _ in rest)] for k in (0, 1))
        x = node(ms.PadOp, x, pad=[*begin, *end], value=value)
        inner = x.shape[1 : count + 1]
        if any(n % b for n, b in zip(inner, block, strict=True)):
            raise node.failure("MSC0711", f"blocks of {block} do not divide an image of {list(inner)}")
        split = [n for pair in zip(inner, block, strict=True) for n in (pair[0] // pair[1], pair[1])]
        y = node.reshape(x, [batch, *split, *rest])
        outer, within = [1 + 2 * k for k in range(count)], [2 + 2 * k for k in range(count)]
        y = node.transpose(y, [*within, 0, *outer, *range(2 * count + 1, y.rank)])
        return node.reshape(y, [batch * math.prod(block), *split[::2], *rest])
    if batch % math.prod(block):
        raise node.failure("MSC0711", f"blocks of {block} do not divide a batch of {batch}")
    images = batch // math.prod(block)
    y = node.reshape(x, [*block, images, *inner, *rest])
    pairs = [a for k in range(count) for a in (count + 1 + k, k)]
    y = node.transpose(y, [count, *pairs, *range(2 * count + 1, y.rank)])
    whole = [n * b for n, b in zip(inner, block, strict=True)]
    y = node.reshape(y, [images, *whole, *rest])
    begin = [0, *(int(n) for n in amounts[:, 0]), *(0 for _ in rest)]
    end = [images, *(n - int(c) for n, c in zip(whole, amounts[:, 1], strict=True)), *rest]
    return node(ms.SliceOp, y, begin=begin, end=end)
