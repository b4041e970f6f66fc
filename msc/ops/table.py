"""Rows of a table written at computed places, one after the other: the last of several of one place wins."""

from __future__ import annotations

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor


def write_rows(table: Tensor, places: Tensor, rows: Tensor, join: str | None = None) -> Tensor:
    """`rows` put into the entries of `table` at `places`; joined with what is there by the operation `join`, if any."""
    for i in range(places.shape[0]):
        number = Tensor(i, dtypes.int64)
        place, row = apply("extract_slice", places, number), apply("extract_slice", rows, number)
        if join is not None:
            row = apply(join, apply("extract_slice", table, place), row)
        table = apply("insert_slice", table, place, row)
    return table
