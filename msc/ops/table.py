"""A loop that writes rows of a table at computed places, one after the other: the last of several of one place wins."""

from __future__ import annotations

from msc.frontend.control import for_loop
from msc.frontend.dispatch import apply
from msc.frontend.tensor import Tensor


def write_rows(table: Tensor, places: Tensor, rows: Tensor, join: str | None = None) -> Tensor:
    """`rows` put into the entries of `table` at `places`; joined with what is there by the operation `join`, if any."""

    def body(i: Tensor, carried: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        place, row = apply("extract_slice", places, i), apply("extract_slice", rows, i)
        if join is not None:
            row = apply(join, apply("extract_slice", carried[0], place), row)
        return (apply("insert_slice", carried[0], place, row),)

    return for_loop(places.shape[0], body, (table,))[0]
