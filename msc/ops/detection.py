"""Boxes of objects in images, as MindSpore's detection operators have them: [x0, y0, x1, y1], both corners inside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, concrete
from msc.ops import activation, arithmetic, comparison, joining, random, selection, shapes, unary
from msc.ops.primitive import operator

__all__ = [
    "IOU", "BoundingBoxDecode", "BoundingBoxEncode", "CheckValid", "NMSWithMask", "RandomChoiceWithMask",
    "check_valid", "iou",
]  # fmt: skip

Four = Sequence[float]


def _columns(boxes: Tensor, function: str) -> tuple[Tensor, ...]:
    if boxes.ndim != 2 or boxes.shape[1] not in (4, -1):
        raise ApiValueError("MSC0201", f"{function}: boxes have shape {boxes.shape}, not [n, 4]")
    return joining.unbind(boxes, 1)


def iou(anchor_boxes: Tensor, gt_boxes: Tensor, mode: str = "iou") -> Tensor:
    """The overlaps `[m, n]` of boxes `[m, 4]`, `gt_boxes`, and anchors `[n, 4]`.

    Over the union, or, with mode "iof", over the box. Raises MSC0203 for another mode.
    """
    if mode not in ("iou", "iof"):
        raise ApiValueError("MSC0203", f"iou: mode is {mode!r}, not 'iou' or 'iof'")
    a = [shapes.expand_dims(c, 0) for c in _columns(anchor_boxes, "iou")]
    b = [shapes.expand_dims(c, 1) for c in _columns(gt_boxes, "iou")]
    width = activation.relu(arithmetic.minimum(a[2], b[2]) - arithmetic.maximum(a[0], b[0]) + 1)
    height = activation.relu(arithmetic.minimum(a[3], b[3]) - arithmetic.maximum(a[1], b[1]) + 1)
    common, one, other = width * height, *((c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b))
    return common / (one + other - common if mode == "iou" else other)


def _middles(boxes: Tensor, function: str) -> tuple[Tensor, ...]:
    """Middles and sizes: x, y, width, height."""
    x0, y0, x1, y1 = _columns(boxes, function)
    return (x0 + x1) * 0.5, (y0 + y1) * 0.5, x1 - x0 + 1, y1 - y0 + 1


def _encode(
    anchor_box: Tensor,
    groundtruth_box: Tensor,
    *,
    means: Four = (0.0, 0.0, 0.0, 0.0),
    stds: Four = (1.0, 1.0, 1.0, 1.0),
) -> Tensor:
    """How boxes lie to anchors: moves in anchors' sizes, logarithms of ratios; less means, over deviations."""
    px, py, pw, ph = _middles(anchor_box, "BoundingBoxEncode")
    gx, gy, gw, gh = _middles(groundtruth_box, "BoundingBoxEncode")
    moves = (gx - px) / pw, (gy - py) / ph, unary.log(gw / pw), unary.log(gh / ph)
    return joining.stack([(m - mean) / std for m, mean, std in zip(moves, means, stds, strict=True)], 1)


def _decode(
    anchor_box: Tensor,
    deltas: Tensor,
    *,
    max_shape: Sequence[int],
    means: Four = (0.0, 0.0, 0.0, 0.0),
    stds: Four = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> Tensor:
    """The boxes that `BoundingBoxEncode` gave, inside images of `max_shape` (height, width)."""
    px, py, pw, ph = _middles(anchor_box, "BoundingBoxDecode")
    moves = zip(_columns(deltas, "BoundingBoxDecode"), means, stds, strict=True)
    dx, dy, dw, dh = (m * float(std) + float(mean) for m, mean, std in moves)
    limit = abs(float(np.log(wh_ratio_clip)))
    gw, gh = (size * unary.exp(activation.clamp(d, -limit, limit)) for size, d in ((pw, dw), (ph, dh)))
    gx, gy = px + pw * dx, py + ph * dy
    if isinstance(max_shape, Tensor):
        raise ApiTypeError(
            "MSC0811", "BoundingBoxDecode: max_shape is a Tensor; it takes two numbers, as in (768, 1280)"
        )
    bottom, right = float(max_shape[0]), float(max_shape[1])
    corners = (
        (gx - gw * 0.5 + 0.5, right),
        (gy - gh * 0.5 + 0.5, bottom),
        (gx + gw * 0.5 - 0.5, right),
        (gy + gh * 0.5 - 0.5, bottom),
    )
    return joining.stack([activation.clamp(c, 0.0, most) for c, most in corners], 1)


def check_valid(bboxes: Tensor, img_metas: Tensor) -> Tensor:
    """Whether boxes `[n, 4]` lie in an image; `img_metas` are height, width and the ratio that both are scaled by."""
    x0, y0, x1, y1 = _columns(bboxes, "check_valid")
    height, width, ratio = (selection.gather(img_metas, Tensor(i, dtypes.int32), 0) for i in range(3))
    inside = comparison.logical_and(x0 >= 0, y0 >= 0)
    inside = comparison.logical_and(inside, width * ratio - 1 >= x1)
    return comparison.logical_and(inside, height * ratio - 1 >= y1)


def _nms(bboxes: Tensor, *, iou_threshold: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes with scores `[n, 5]` by falling score, their numbers in this order (Int32), and which stay (Bool).

    A box goes if it overlaps a better one that stays by more than the threshold. Computed outside of graphs.
    """
    rows = concrete(bboxes, "NMSWithMask")
    if rows.ndim != 2 or rows.shape[1] < 5:
        raise ApiValueError("MSC0201", f"NMSWithMask: boxes with scores have shape {rows.shape}, not [n, 5]")
    best = rows[np.argsort(-rows[:, 4], kind="stable")]
    x0, y0, x1, y1 = best[:, :4].T.astype(np.float32)
    area = (x1 - x0) * (y1 - y0)
    stays = np.ones(len(best), bool)
    for i in range(len(best)):
        if stays[i]:
            width = np.maximum(np.minimum(x1[i], x1) - np.maximum(x0[i], x0), 0)
            height = np.maximum(np.minimum(y1[i], y1) - np.maximum(y0[i], y0), 0)
            common = width * height
            overlaps = common > iou_threshold * (area[i] + area - common)
            stays[i + 1 :] &= ~overlaps[i + 1 :]
    return Tensor(best), Tensor(np.arange(len(best), dtype=np.int32)), Tensor(stays)


def _choice(input_x: Tensor, *, count: int = 256, seed: int = 0, seed2: int = 0) -> tuple[Tensor, Tensor]:
    """`count` places of true elements at random (Int32 `[count, rank]`), and which rows are such (Bool).

    All of them if there are fewer; other rows are 0. Computed outside of graphs.
    """
    places = np.argwhere(concrete(input_x, "RandomChoiceWithMask"))
    keys = random.rand(max(len(places), 1), seed=(seed or seed2) or None).asnumpy()
    chosen = places[np.argsort(keys[: len(places)], kind="stable")[:count]]
    index = np.zeros((count, input_x.ndim), np.int32)
    index[: len(chosen)] = chosen
    return Tensor(index), Tensor(np.arange(count) < len(chosen))


IOU = operator("IOU", iou, "mode")
BoundingBoxEncode = operator("BoundingBoxEncode", _encode, "means stds")
BoundingBoxDecode = operator("BoundingBoxDecode", _decode, "max_shape means stds wh_ratio_clip")
CheckValid = operator("CheckValid", check_valid)
NMSWithMask = operator("NMSWithMask", _nms, "iou_threshold")
RandomChoiceWithMask = operator("RandomChoiceWithMask", _choice, "count seed seed2")
