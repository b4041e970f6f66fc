"""A program that adds a library call to msc, and compiles and runs a model with it.

`hash_rows` gives each row of bytes a number, and writes the row reversed over it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import Array
from msc.dialects.calls.library_call import LibraryCall, Rows, register


class HashRows(LibraryCall):
    name = "hash_rows"
    inputs = ("row",)
    outputs = ("hash", "reversed")
    text = """/*** hash_rows ***/
/* Fowler, Noll and Vo's hash of the elements, which are reversed. */
static inline void hash_rows_{f}(
    const {e} *row, int64_t size, int64_t *hash, int64_t one, {e} *reversed, int64_t length, {e} *scratch)
{
    uint64_t h = 1469598103934665603u;
    for (int64_t i = 0; i < size; ++i) {
        scratch[size - 1 - i] = row[i];
        h = (h ^ ({ue})row[i]) * 1099511628211u;
    }
    for (int64_t i = 0; i < size && i < length; ++i)
        reversed[i] = scratch[i];
    for (int64_t i = 0; i < one; ++i)
        hash[i] = (int64_t)h;
}
"""

    def check(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> None:
        if inputs[0].element_type != i32 or [o.element_type for o in outputs] != [i64, i32]:
            raise VerifyException("rows of i32 give a hash of i64 and rows of i32")

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        hashes = np.full(rows[0].shape[:-1], 1469598103934665603, np.uint64)
        for column in np.moveaxis(rows[0], -1, 0):
            hashes = (hashes ^ column.astype(np.uint32)) * np.uint64(1099511628211)
        return hashes.astype(np.int64)[..., None], rows[0][..., ::-1]

    def scratch(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> int:
        return inputs[0].get_shape()[-1]


register(HashRows())

import msc  # noqa: E402 (the call comes first)

KERNEL = """
func.func @main(%x: tensor<3x5x7xi32> {ms.name = "x"}) -> (tensor<3x5x1xi64>, tensor<3x5x7xi32>) {
  %h, %r = gk.call "hash_rows" %x : (tensor<3x5x7xi32>) -> (tensor<3x5x1xi64>, tensor<3x5x7xi32>)
  func.return %h, %r : tensor<3x5x1xi64>, tensor<3x5x7xi32>
}
"""


def check(folder: Path) -> None:
    """Raises AssertionError where C gives another result than NumPy."""
    path = folder / "hashes.gk.mir"
    path.write_text(KERNEL, "utf-8")
    x = np.random.default_rng(0).integers(-9, 9, (3, 5, 7), np.int32)
    for found, expected in zip(msc.compile(path)(x), HashRows().meaning((1, 7), x), strict=True):
        np.testing.assert_array_equal(found, expected)


if __name__ == "__main__":
    check(Path(sys.argv[1]))
    print("as NumPy says")
