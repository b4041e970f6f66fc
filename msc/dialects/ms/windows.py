"""Sliding windows, along one spatial axis each: how large the output is, and what padding `same` means."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir.affine import AffineExpr

from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.properties import ints_property
from msc.dialects.ms.shapes import UNKNOWN, Shape, known, shape_text
from msc.ir.errors import InvalidAttribute, ShapeConflict

AXIS_NAMES = ("d", "h", "w")
"""Names of spatial axes; with fewer than three, the last ones are meant."""

Padding = tuple[tuple[int, int], ...]
"""What is added before and after each spatial axis."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window along one axis: `size` elements, `dilation` apart, moved by `stride`."""

    size: int
    stride: int
    dilation: int

    @property
    def span(self) -> int:
        """The elements from the first to the last one of a window."""
        return (self.size - 1) * self.dilation + 1

    def positions(self, length: int, begin: int = 0, end: int = 0, ceil: bool = False) -> int:
        """How many windows fit into `length` elements with padding.

        With `ceil` a last window may stand out, if it starts in the data or in front of it (ONNX, PyTorch).
        """
        if not known((length, self.size)):
            return UNKNOWN
        room = begin + length + end - self.span
        if not ceil:
            return room // self.stride + 1
        last = -(-room // self.stride)
        return last if last * self.stride >= begin + length else last + 1

    def same_padding(self, length: int) -> tuple[int, int]:
        """The padding that gives ceil(length / stride) positions; an odd one goes to the end (SAME_UPPER)."""
        covered = 0 if self.stride == 1 else (-(-length // self.stride) - 1) * self.stride - (length - 1)
        total = max(covered + self.span - 1, 0)
        return total // 2, total - total // 2


class WindowOp(TensorOp):
    """Base of convolution and pooling on tensors `[n, c, spatial...]`: the common properties, in `SPATIAL` axes.

    `pad_mode` is "valid" (none), "same" (output size is input size / stride, rounded up) or "pad": as `pad` says, which
    holds begin and end of each spatial axis: `[top, bottom, left, right]` in two dimensions.
    """

    SPATIAL: ClassVar[int]
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"pad_mode": ("valid", "same", "pad")}

    @abstractmethod
    def kernel(self) -> Sequence[int]:
        """Size of the window in each spatial axis."""
        raise TypeError(f"{self.name} does not say how large its window is")

    def windows(self) -> tuple[Window, ...]:
        """The window along each spatial axis. Raises InvalidAttribute."""
        lists = {name: self.ints(name) for name in ("stride", "dilation")} | {"kernel_size": tuple(self.kernel())}
        for name, values in lists.items():
            least = UNKNOWN if name == "kernel_size" and "kernel_size" not in self.properties else 1
            if len(values) != self.SPATIAL or any(v < least or v == 0 for v in values):
                text = ", ".join(map(str, values))
                raise InvalidAttribute(f"{self.name}: {name} [{text}] must have {self.SPATIAL} entries of 1 or more")
        return tuple(map(Window, lists["kernel_size"], lists["stride"], lists["dilation"]))

    def spatial(self) -> Shape:
        """The spatial sizes of the input."""
        return self.shape(0)[2:]

    def padding(self) -> Padding:
        """Begin and end padding of each spatial axis. Raises ShapeConflict if it depends on an unknown size."""
        match self.word("pad_mode"):
            case "same":
                return tuple(self._same_padding(n, w) for n, w in zip(self.spatial(), self.windows(), strict=True))
            case "pad":
                return self.written_padding()
            case _:
                return ((0, 0),) * self.SPATIAL

    def _same_padding(self, length: int, window: Window) -> tuple[int, int]:
        if window.size == UNKNOWN or (length == UNKNOWN and window.stride != 1):
            raise ShapeConflict(
                f"{self.name}: pad_mode 'same' on {shape_text(self.shape(0))} needs known spatial sizes"
            )
        return window.same_padding(length)

    def written_padding(self) -> Padding:
        """What property `pad` says. Raises InvalidAttribute."""
        pad = self.ints("pad")
        if len(pad) != 2 * self.SPATIAL or any(p < 0 for p in pad):
            text = ", ".join(map(str, pad))
            raise InvalidAttribute(
                f"{self.name}: pad [{text}] must have {2 * self.SPATIAL} entries of 0 or more, two an axis"
            )
        return tuple(zip(pad[0::2], pad[1::2], strict=True))

    def check_padding(self) -> None:
        """Raise InvalidAttribute unless `pad` goes with `pad_mode`."""
        if any(map(any, self.written_padding())) and self.word("pad_mode") != "pad":
            raise InvalidAttribute(f"{self.name}: pad has no meaning with pad_mode = {self.word('pad_mode')!r}")

    def output_spatial(self, ceil: bool = False) -> Shape:
        """The spatial sizes of the output. Raises ShapeConflict if a window does not fit into the padded input."""
        windows, sizes = self.windows(), self.spatial()
        if 0 in sizes:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(self.shape(0))}, which has no elements")
        if self.word("pad_mode") == "same":
            return tuple(n if n == UNKNOWN else -(-n // w.stride) for n, w in zip(sizes, windows, strict=True))
        padding = self.padding()
        self._check_fit(padding, ceil)
        return tuple(w.positions(n, *p, ceil) for w, n, p in zip(windows, sizes, padding, strict=True))

    def _check_fit(self, padding: Padding, ceil: bool) -> None:
        windows, sizes = self.windows(), self.spatial()
        for length, pair, window in zip(sizes, padding, windows, strict=True):
            if known((length, window.size)) and window.positions(length, *pair, ceil) < 1:
                padded = [n if n == UNKNOWN else n + b + e for n, (b, e) in zip(sizes, padding, strict=True)]
                raise ShapeConflict(
                    f"{self.name}: a window of {shape_text([w.span for w in windows])} does not fit into the "
                    f"(padded) input of {shape_text(padded)}"
                )

    @property
    def is_padded(self) -> bool:
        """Whether any window reads padding; taken to be so where it depends on an unknown size."""
        if self.word("pad_mode") == "same" and not known(self.spatial()):
            return True
        return any(map(any, self.padding()))

    def taps(self, outputs: Sequence[AffineExpr], kernel: Sequence[AffineExpr]) -> list[AffineExpr]:
        """The spatial index that an element of the window at an output position reads, in an unpadded input."""
        return [o * w.stride + k * w.dilation for o, k, w in zip(outputs, kernel, self.windows(), strict=True)]

    @classmethod
    def axis_names(cls, prefix: str) -> tuple[str, ...]:
        """Loop names of the spatial axes: `oh`, `ow`."""
        return tuple(prefix + axis for axis in AXIS_NAMES[-cls.SPATIAL :])


class Spatial1d:
    """The properties of a `WindowOp` along one spatial axis."""

    SPATIAL: ClassVar[int] = 1
    pad = ints_property(0, 0)
    stride = ints_property(1)
    dilation = ints_property(1)


class Spatial2d:
    """The properties of a `WindowOp` along two spatial axes."""

    SPATIAL: ClassVar[int] = 2
    pad = ints_property(0, 0, 0, 0)
    stride = ints_property(1, 1)
    dilation = ints_property(1, 1)


class Spatial3d:
    """The properties of a `WindowOp` along three spatial axes."""

    SPATIAL: ClassVar[int] = 3
    pad = ints_property(0, 0, 0, 0, 0, 0)
    stride = ints_property(1, 1, 1)
    dilation = ints_property(1, 1, 1)
