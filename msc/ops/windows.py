"""Convolution and pooling: MindSpore's padding words in those of the `ms` operations."""

from __future__ import annotations

from collections.abc import Sequence

from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor

Sizes = int | Sequence[int]


def spread(value: Sizes, count: int, what: str) -> tuple[int, ...]:
    """One size for each axis; a single one is that of all. Raises MSC0813."""
    sizes = (int(value),) * count if isinstance(value, int) else tuple(int(v) for v in value)
    if len(sizes) == 1:
        sizes *= count
    if len(sizes) != count:
        raise ApiValueError("MSC0813", f"{what} is {value}; it must be one number or {count}")
    return sizes


def pads(value: Sizes, count: int, what: str) -> tuple[int, ...]:
    """What is added before and after each axis: one number, one for each axis or two for each. Raises MSC0813."""
    if not isinstance(value, int) and len(value) == 2 * count and count > 1:
        return tuple(int(v) for v in value)
    return tuple(side for size in spread(value, count, what) for side in (size, size))


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    pad_mode: str = "valid",
    padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution of images `[n, ic, h, w]` with weights `[oc, ic / groups, kh, kw]`."""
    return apply(
        "conv2d",
        input,
        weight,
        bias,
        pad_mode=pad_mode,
        pad=pads(padding, 2, "padding") if pad_mode == "pad" else None,
        stride=spread(stride, 2, "stride"),
        dilation=spread(dilation, 2, "dilation"),
        group=groups,
    )
