"""The layouts in which products read their right operands: panels of columns, as wide as a register tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from msc.cost.register_tiles import long_row, micro_panel_widths, rows_kept, tile_rows
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.accumulation import NARROW_INTEGERS
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.dialects.ms.movement import TransposeOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.ms.subpixel_convolution import SubpixelConvOp
from msc.dialects.ms.views import ReshapeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.ir.typed import static_shape
from msc.targets.machine import Machine

_WORD = 4
"""Bytes of a word."""


@dataclass(frozen=True)
class Packing:
    """A tensor padded to the shape `padded`, reshaped to `split`, then transposed by `perm`, is how it is stored."""

    padded: tuple[int, ...]
    split: tuple[int, ...]
    perm: tuple[int, ...]

    @property
    def inverse(self) -> tuple[int, ...]:
        """The transposition that undoes `perm`."""
        return tuple(self.perm.index(k) for k in range(len(self.perm)))

    def moves(self, value: SSAValue) -> list[MsOp]:
        """The operations that store a value so."""
        ops = self.before(value)
        return [*ops, TransposeOp(ops[-1].results[0] if ops else value, perm=self.perm)]

    def before(self, value: SSAValue) -> list[MsOp]:
        """Those of them in front of the transposition."""
        ops: list[MsOp] = []
        shape = static_shape(value)
        if self.padded != shape:
            added = [there - here for here, there in zip(shape, self.padded, strict=True)]
            ops.append(PadOp(value, pad=(*(0 for _ in shape), *added)))
        if self.split != self.padded:
            ops.append(ReshapeOp(ops[-1].results[0] if ops else value, shape=self.split))
        return ops


def terms_of(op: MsOp, target: Machine) -> int:
    """How many terms of its sums an instruction of the machine takes at a time, which then lie side by side; else 1."""
    types = op.dtype(0), op.dtype(1), op.result_dtype()
    units = (unit for unit in target.units if unit.in_registers and unit.shape.n == target.lanes(BYTES["f32"]))
    return next((unit.shape.k for unit in units if unit.order(*types) is not None), 1)


def convolves_bytes(kernel: KernelOp) -> bool:
    """Whether a kernel convolves bytes, of which several channels of a place ought to lie side by side.

    Instructions take those of a word; vectors of bytes whose lanes lie apart would be loaded one by one.
    """
    return any(
        isinstance(op, ConvolutionOp) and op.dtype(0) in NARROW_INTEGERS and op.shape(0)[1] >= _WORD
        for op in kernel.body.block.ops
    )


def panel_width(
    columns: int, dtype: str, target: Machine, rows: int | None = None, steps: int = 0, terms: int = 1
) -> int | None:
    """The width of panels: the best that divides the columns, or else the best; None where there is nothing to cut.

    `rows` of `steps` elements are what the panels are multiplied by; lanes have `terms` elements each.
    """
    size = _lane_bytes(dtype, target, terms)
    widths = micro_panel_widths(target, size, rows, steps * BYTES[dtype])
    width = next((w for w in widths if columns % w == 0), widths[0])
    return width if columns > width else None


def _lane_bytes(dtype: str, target: Machine, terms: int) -> int:
    """Bytes of a lane with so many elements: sums of bytes have 32 bits, and registers without lanes hold one."""
    return max(BYTES[dtype] * terms, min(target.vector_bytes, BYTES["i32"]) if target.lanes(BYTES["i32"]) == 1 else 0)


def _filled(size: int, terms: int) -> int:
    """The next multiple of `terms`."""
    return -(-size // terms) * terms


def _row_panel_height(rows: int, columns: int, dtype: str, target: Machine) -> int | None:
    """The height of panels of rows, of which a register tile reads one line a step: as even as fill its registers."""
    panels = -(-rows // tile_rows(target, columns, BYTES[dtype]))
    return -(-rows // panels) if panels > 1 else None


def _group_panel(outputs: int, dtype: str, target: Machine, terms: int) -> int | None:
    """The width of panels of a group's outputs; None where whole panels, and those whole vectors, do not fill it."""
    panel = panel_width(outputs, dtype, target, terms=terms) or outputs
    return panel if outputs % panel == 0 and panel % target.lanes(_lane_bytes(dtype, target, terms)) == 0 else None


def weight_packing(op: ConvolutionOp | SubpixelConvOp, target: Machine, places: int | None) -> Packing:
    """`[..., oc, ic, k...]` to `[..., panel, k..., ic, oc in panel]`, or to `[..., k..., ic, oc]` without panels.

    Panels are as wide as a register tile has columns; as it has rows, where vectors run along an image of `places`.
    Those of groups are at most as wide as a group. Where an instruction takes several terms, those of input channels
    come last, filled up with zeros.
    """
    count = op.axes if isinstance(op, SubpixelConvOp) else 0
    shape, lead, dtype = op.shape(1), tuple(range(count)), op.dtype(1)
    outputs, inputs, *kernel = shape[count:]
    terms = terms_of(op, target) if isinstance(op, ConvolutionOp) and places is None else 1
    terms = terms if inputs >= terms else 1
    group = op.int_("group")
    if group > 1:
        panel = _group_panel(outputs // group, dtype, target, terms)
    elif places is None:
        panel = panel_width(outputs, dtype, target, terms=terms)
    else:
        panel = _row_panel_height(outputs, places, dtype, target)
    width = panel or outputs
    panels = -(-outputs // width)
    padded = (*shape[:count], panels * width, _filled(inputs, terms), *kernel)
    cut = panel is not None
    split = (*shape[:count], *([panels] if cut else ()), width, *_parted(padded[count + 1], terms), *kernel)
    oc = count + cut
    ic, *term = range(oc + 1, oc + 1 + (2 if terms > 1 else 1))
    taps = range(oc + 2 + len(term), len(split))
    return Packing(padded, split, (*lead, *([count] if cut else ()), *taps, ic, oc, *term))


def _parted(size: int, terms: int) -> tuple[int, ...]:
    """A dimension as groups of terms that an instruction takes."""
    return (size // terms, terms) if terms > 1 else (size,)


def matrix_packing(op: MatrixProductOp, target: Machine, cut: bool) -> Packing | None:
    """`[..., k, n]` or `[..., n, k]` to `[..., panel, k, n in panel]`; None to leave it as it is.

    Without `cut` to `[..., k, n]`. Where an instruction takes several terms, those come last, filled up with zeros.
    """
    *batch, rows, columns = op.shape(1)
    transposed, dtype = op.flag("transpose_b"), op.dtype(1)
    n, k = (rows, columns) if transposed else (columns, rows)
    terms = terms_of(op, target) if cut else 1
    terms = terms if k >= terms else 1
    lead, count = tuple(range(len(batch))), len(batch)
    panel = panel_width(n, dtype, target, op.result_shape()[-2], k, terms) if cut else None
    if panel is None and terms == 1:
        return Packing(op.shape(1), op.shape(1), (*lead, count + 1, count)) if transposed else None
    panels = () if panel is None else (-(-n // panel),)
    width = panel or n
    filled, parts = prod(panels) * width, _parted(_filled(k, terms), terms)
    of_n = len(panels) + 1
    if transposed:
        padded, split = (*batch, filled, prod(parts)), (*batch, *panels, width, *parts)
        places = range(count, count + of_n), range(count + of_n, len(split))
    else:
        padded, split = (*batch, prod(parts), filled), (*batch, *parts, *panels, width)
        places = range(len(split) - of_n, len(split)), range(count, len(split) - of_n)
    (*panel_at, n_at), (k_at, *term_at) = places
    return Packing(padded, split, (*lead, *panel_at, k_at, n_at, *term_at))


def packing_pays(op: MatrixProductOp, n: int, target: Machine, readers: int = 0) -> bool:
    """Whether packing a variable operand costs less than it saves, for one product or all that are its `readers`."""
    m = op.result_shape()[-2]
    if op.flag("transpose_b"):
        return max(m, readers) >= target.code.packed_rows
    return m >= 4 * target.code.packed_rows and n * BYTES[op.dtype(1)] >= long_row(target)


def transposes_left(shape: Sequence[int], columns: int, dtype: str, target: Machine) -> bool:
    """Whether a left operand `[..., k, m]` of a product with so many columns is better transposed in front of it.

    A register tile reads down such columns, a line for each step: the gradient by the weight of a layer. Where L1 does
    not keep these lines until the tile reads the rest of them, each is read again and again.
    """
    *_, steps, rows = shape
    return min(columns, steps) >= target.code.packed_rows and steps > rows_kept(target, rows * BYTES[dtype])


def images_pay(op: ConvolutionOp | SubpixelConvOp, target: Machine) -> bool:
    """Whether so many places of images read a variable weight that packing it costs less than it saves."""
    n, _, *spatial = op.result_shape()
    return not has_open_sizes(op) and n * prod(spatial) >= target.code.packed_rows
