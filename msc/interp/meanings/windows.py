"""Sliding windows over the spatial dimensions of NC... tensors: padding, positions, and one strided view an offset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp

Pads = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Windows:
    """Windows of `kernel` elements, `dilation` apart, one every `stride`; one entry a spatial dimension."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]

    def extents(self) -> tuple[int, ...]:
        """Elements that a window spans."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    def pads(self, op: MsOp, spatial: Sequence[int]) -> Pads:
        """(before, after) of each spatial dimension; "same" gives ceil(size / stride) windows, the odd one after."""
        mode = op.word("pad_mode")
        if mode == "pad":
            pad = op.ints("pad") or (0,) * (2 * len(spatial))
            return tuple(zip(pad[0::2], pad[1::2], strict=True))
        if mode == "valid":
            return tuple((0, 0) for _ in spatial)
        totals = [
            max((-(-n // s) - 1) * s + e - n, 0) for n, s, e in zip(spatial, self.stride, self.extents(), strict=True)
        ]
        return tuple((total // 2, total - total // 2) for total in totals)

    def counts(self, spatial: Sequence[int], *, ceil: bool = False) -> tuple[int, ...]:
        """Windows that fit into each (padded) dimension; with `ceil` also one that overhangs."""
        steps = zip(spatial, self.extents(), self.stride, strict=True)
        return tuple((-(-(n - e) // s) if ceil else (n - e) // s) + 1 for n, e, s in steps)

    def offsets(self, padded: Array, counts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Array]]:
        """For each place in the kernel, in order: the view of that element of every window."""
        lead = padded.ndim - len(self.kernel)
        for place in itertools.product(*map(range, self.kernel)):
            yield place, padded[(slice(None),) * lead + self._every(place, counts)]

    def _every(self, place: Sequence[int], counts: Sequence[int]) -> tuple[slice, ...]:
        starts = [p * d for p, d in zip(place, self.dilation, strict=True)]
        steps = zip(starts, counts, self.stride, strict=True)
        return tuple(slice(start, start + (count - 1) * s + 1, s) for start, count, s in steps)


def windows_of(op: MsOp, kernel: Sequence[int]) -> Windows:
    """The windows of an operation with stride and dilation; one number, or none, stands for all dimensions."""
    rank = len(kernel)
    return Windows(tuple(kernel), _spread(op.ints("stride"), rank), _spread(op.ints("dilation"), rank))


def _spread(values: Sequence[int], rank: int) -> tuple[int, ...]:
    if len(values) == rank:
        return tuple(values)
    return tuple(values or (1,)) * rank


def padded(x: Array, pads: Pads, value: float = 0) -> Array:
    """`x` with its trailing dimensions padded; `x` itself if there is nothing to pad."""
    if not any(itertools.chain(*pads)):
        return x
    widths = ((0, 0),) * (x.ndim - len(pads)) + pads
    return np.pad(x, widths, constant_values=value)
