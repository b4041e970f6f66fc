"""The library call `argsort`: the places of the first keys of a row in ascending order; equal keys keep their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.utils.exceptions import VerifyException

from msc.dialects.arrays import Array
from msc.dialects.calls.library_call import LibraryCall, Prototype, Rows, register

_INSERTED = 64
"""How many places are found by insertion at most, which moves half of them for each; more are found by their digits."""

_BUFFERED = 512
"""Keys beyond twice the count that are sorted at once: so many take about as long as the sums over a digit's values."""

_DIGIT = 256
"""Values of a digit."""


def _capacity(size: int, count: int) -> int:
    """How many keys are sorted at once to find `count` of `size`."""
    return count if count <= _INSERTED else min(size, 2 * count + _BUFFERED)


class Argsort(LibraryCall):
    """Keys are i32 or i64, places are i64; a row of places may be shorter than one of keys."""

    name = "argsort"
    inputs = ("keys",)
    outputs = ("places",)
    text = Path(__file__).with_suffix(".h")

    def check(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> None:
        (keys,), (places,) = inputs, outputs
        if keys.element_type not in (i32, i64) or places.element_type != i64:
            raise VerifyException("keys are i32 or i64, places are i64")
        given, found = keys.get_shape(), places.get_shape()
        if not 1 <= found[-1] <= given[-1]:
            raise VerifyException(f"rows of {list(given)} keys have no rows of {list(found)} places")

    def meaning(self, lengths: Sequence[int], *rows: Array) -> tuple[Array, ...]:
        return (np.argsort(rows[0], axis=-1, kind="stable")[..., : lengths[0]],)

    def prototype(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> Prototype:
        size, count = inputs[0].get_shape()[-1], outputs[0].get_shape()[-1]
        return (
            Prototype("insertion_argsort")
            if count <= _INSERTED
            else Prototype("radix_argsort", (_capacity(size, count),))
        )

    def scratch(self, inputs: Sequence[Rows], outputs: Sequence[Rows]) -> int:
        """Pairs of a key and its place, and if they are sorted by digits twice so many pairs, and the number of keys
        with each value of each digit.
        """
        size, count = inputs[0].get_shape()[-1], outputs[0].get_shape()[-1]
        pairs = 2 * _capacity(size, count)
        key_bytes = 4 if inputs[0].element_type == i32 else 8
        return pairs if count <= _INSERTED else 2 * pairs + key_bytes * _DIGIT


register(Argsort())
