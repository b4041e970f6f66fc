"""The attributes that convolution and pooling share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msc.importers.onnx.node import Node

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True)
class WindowAttributes:
    """Window, stride, dilation, and the padding before and after each spatial axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    @property
    def pad(self) -> list[int]:
        """Padding as `ms` has it: begin and end, axis by axis; none where it is negative."""
        return [max(amount, 0) for pair in self.pads for amount in pair]

    @property
    def spans(self) -> tuple[int, ...]:
        """The elements from the first to the last one of a window."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def padding_properties(self) -> dict[str, str | list[int]]:
        """The properties `pad_mode` and `pad`."""
        return {"pad_mode": "pad", "pad": self.pad} if any(self.pad) else {}


def window_attributes(
    node: Node, spatial: Sequence[int], kernel: Sequence[int], *, crops: bool = False
) -> WindowAttributes:
    """What a node says about windows over axes of sizes `spatial`. Raises MSC0711.

    Where strides pass over more than windows reach, SAME is no padding, or with `crops` a negative one.
    """
    rank = len(spatial)
    stride = node.ints("strides") or [1] * rank
    dilation = node.ints("dilations") or [1] * rank
    pads = node.ints("pads") or [0] * (2 * rank)
    if not len(kernel) == len(stride) == len(dilation) == rank or len(pads) != 2 * rank:
        raise node.failure("MSC0711", f"kernel, strides, dilations or pads do not fit {rank} spatial axes")
    if min([*kernel, *stride, *dilation], default=1) < 1:
        raise node.failure("MSC0711", "kernel, strides and dilations must be 1 or more")
    if min(pads, default=0) < 0:
        raise node.failure("MSC0711", "pads must be 0 or more")
    plain = WindowAttributes(
        tuple(kernel), tuple(stride), tuple(dilation), tuple(zip(pads[:rank], pads[rank:], strict=True))
    )
    mode = node.choice("auto_pad", "NOTSET", AUTO_PADS)
    if mode == "NOTSET":
        return plain
    sizes = zip(spatial, plain.spans, stride, strict=True)
    least = min(0, *(-n for n in spatial)) if crops else 0
    totals = [0 if mode == "VALID" else max((-(-n // s) - 1) * s + span - n, least) for n, span, s in sizes]
    return WindowAttributes(plain.kernel, plain.stride, plain.dilation, tuple(halves(t, mode) for t in totals))


def halves(total: int, mode: str) -> tuple[int, int]:
    """A padding in two, also a negative one: an odd one goes to the end, with SAME_LOWER to the beginning."""
    less, more = total // 2, total - total // 2
    return (more, less) if mode == "SAME_LOWER" else (less, more)
