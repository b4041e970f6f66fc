"""Register tiles of products as layouts need them: how wide panels of columns are, how high panels of rows.

`pack-operands` cuts operands into panels before tiles are chosen, so both take the widths from here.
"""

from __future__ import annotations

from msc.dialects.element_types import BYTES
from msc.targets.machine import Machine

MUCH_LESS = 1.1
"""How much less work a tile of another shape must be to be worth that its loads are more: a margin of the choice, about
as large as the error of what it compares, and of no machine.
"""

SPARE_REGISTERS = 2
"""Of a register tile, besides accumulators and the vectors of a row: for the broadcast in use and the one after it.

It follows from the form of a step, whatever the machine.
"""


def micro_panel_widths(
    machine: Machine, element_bytes: int, rows: int | None = None, row_bytes: int = 0
) -> tuple[int, ...]:
    """How many columns of a matrix may be stored together for a contraction, the best first.

    A register tile is two vectors wide: wider ones stream more of the panel from L2 for each row that
    they compute. It is `wide_nr` where the `rows` of `row_bytes` on the other side, which pass by once for each panel,
    are the greater stream (`rows_stream`). With so few rows that a tile has fewer sums than are in flight, as many
    vectors as an addition takes cycles and up to twice as many keep the multiply-adds busy. Three where L1 keeps so
    few rows, as they share sets, that a tile two vectors wide would leave registers empty.
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
    return machine.vector_registers // 8


def _fit_three(machine: Machine, rows: int) -> bool:
    """Whether tiles of so many rows are three vectors wide at most."""
    return 3 * rows + 3 + SPARE_REGISTERS <= machine.vector_registers < 4 * rows + 4 + SPARE_REGISTERS


def tile_rows(machine: Machine, columns: int = 0, element_bytes: int = 4) -> int:
    """The rows of a register tile two vectors wide; one wide, where two leave too few sums in flight.

    Of a tile as wide as all `columns` where these leave a tail that is much less work as vectors along the rows,
    and there are rows enough to keep the multiply-adds busy with each vector of the columns.
    """
    whole, tail = divmod(columns, machine.lanes(element_bytes))
    registers, sums = machine.vector_registers - SPARE_REGISTERS, machine.sums_in_flight
    high = (registers - whole - tail) // whole if whole and tail else 0
    if high >= sums and (high * whole + tail) * MUCH_LESS < high * (whole + 1):
        return high
    rows = (registers - 2) // 2
    return rows if 2 * rows >= sums else registers - 1


def rows_stream(machine: Machine, rows: int, row_bytes: int, element_bytes: int) -> bool:
    """Whether rows come from beyond L2 and leave a panel of `wide_nr` vectors in it."""
    return rows * row_bytes > machine.l2 // 2 and keeps_wide_panel(machine, row_bytes, element_bytes)


def keeps_wide_panel(machine: Machine, column_bytes: int, element_bytes: int) -> bool:
    """Whether `wide_nr` vectors of columns find room in registers, and in L2 while rows pass by."""
    wide = wide_nr(machine) * machine.lanes(element_bytes)
    return holds_wide_tiles(machine) and wide * column_bytes <= machine.l2 // 4


def holds_wide_tiles(machine: Machine) -> bool:
    """Whether wide tiles are wider than others."""
    return wide_nr(machine) > 2


def long_row(machine: Machine) -> int:
    """Bytes from which rows of a matrix fall into few sets and a page each; nearer ones need no packing."""
    return machine.page // 2


def many_channels(machine: Machine) -> int:
    """Channels of an image: so many fill half a line of f32, and are worth running vectors along."""
    return machine.line // 2 // BYTES["f32"]


def rows_kept(machine: Machine, row_bytes: int, streams: int = 0) -> int:
    """How many rows so far apart find place in L1 together: those far apart share sets. Streams take a way each."""
    return machine.caches[0].lines_apart(row_bytes, streams)
