"""Sizes of register tiles of products that layouts depend on: the width of column panels, the height of row panels.

`pack-operands` cuts operands into panels before tiles are chosen, so both take the widths from here.
"""

from __future__ import annotations

from msc.dialects.element_types import BYTES
from msc.targets.machine import Machine

MUCH_LESS = 1.1
"""How many times less work a tile of another shape must do to make up for its additional loads. This margin is about
as large as the error of the compared figures, on every machine.
"""

SPARE_REGISTERS = 2
"""Registers besides the accumulators and the vectors of a row: for the current broadcast and the next one.

The form of a step decides this number, on every machine.
"""


def micro_panel_widths(
    machine: Machine, element_bytes: int, rows: int | None = None, row_bytes: int = 0
) -> tuple[int, ...]:
    """The widths of column panels that suit a contraction, the best first.

    A register tile is two vectors wide: wider ones stream more of the panel from L2 for each row that they compute. It
    is `wide_nr` vectors wide if the `rows` of `row_bytes` of the other operand, which are read once for each panel, are
    the greater stream (`rows_stream`). If a tile has fewer sums than are in flight because there are few rows, it is as
    many vectors wide as an addition takes cycles, up to twice that. It is three vectors wide if L1 keeps so few rows,
    as they share sets, that two vectors would leave registers empty.
    """
    few = rows is not None and 2 * rows < machine.sums_in_flight
    wide = rows is not None and rows_stream(machine, rows, row_bytes, element_bytes)
    low = rows is not None and _fit_three(machine, min(rows, rows_kept(machine, row_bytes)))
    busy = (*range(machine.chains, 2 * machine.chains + 1), *range(machine.chains - 1, 0, -1))
    widths = busy if few else (wide_nr(machine), 2, 1) if wide else (3, 2, 1) if low else (2, 1)
    return tuple(k * machine.lanes(element_bytes) for k in widths)


def wide_nr(machine: Machine) -> int:
    """NR, in vectors, of a register tile that reads few elements of other operands for each multiply-add.

    Registers hold eight rows of it, less what a step reads.
    """
    return max(1, machine.vector_registers // 8)


def _fit_three(machine: Machine, rows: int) -> bool:
    """Whether registers hold tiles of `rows` rows that are three vectors wide, but not four."""
    return 3 * rows + 3 + SPARE_REGISTERS <= machine.vector_registers < 4 * rows + 4 + SPARE_REGISTERS


def tile_rows(machine: Machine, columns: int = 0, element_bytes: int = 4) -> int:
    """The rows of a register tile two vectors wide, or one if two leave too few sums in flight.

    The tile is as wide as all `columns` if their tail is much less work as vectors along the rows, and if it has
    enough rows to keep the multiply-adds busy with each vector of the columns.
    """
    whole, tail = divmod(columns, machine.lanes(element_bytes))
    registers, sums = machine.vector_registers - SPARE_REGISTERS, machine.sums_in_flight
    high = (registers - whole - tail) // whole if whole and tail else 0
    if high >= sums and (high * whole + tail) * MUCH_LESS < high * (whole + 1):
        return high
    rows = (registers - 2) // 2
    return rows if 2 * rows >= sums else registers - 1


def rows_stream(machine: Machine, rows: int, row_bytes: int, element_bytes: int) -> bool:
    """Whether rows come from beyond L2 while a panel of `wide_nr` vectors stays in it."""
    return rows * row_bytes > machine.l2 // 2 and keeps_wide_panel(machine, row_bytes, element_bytes)


def keeps_wide_panel(machine: Machine, column_bytes: int, element_bytes: int) -> bool:
    """Whether `wide_nr` vectors of columns fit in registers, and in L2 while rows are streamed."""
    wide = wide_nr(machine) * machine.lanes(element_bytes)
    return holds_wide_tiles(machine) and wide * column_bytes <= machine.l2 // 4


def holds_wide_tiles(machine: Machine) -> bool:
    """Whether tiles of `wide_nr` vectors are wider than others."""
    return wide_nr(machine) > 2


def long_row(machine: Machine) -> int:
    """The distance in bytes from which rows of a matrix map to few sets and a page each, and need packing."""
    return machine.page // 2


def many_channels(machine: Machine) -> int:
    """The channels of an image that fill half a line of f32: vectors along these pay."""
    return machine.line // 2 // BYTES["f32"]


def rows_kept(machine: Machine, row_bytes: int, streams: int = 0) -> int:
    """How many rows `row_bytes` apart fit in L1: distant rows share sets. Each stream takes a way."""
    return machine.caches[0].lines_apart(row_bytes, streams)
