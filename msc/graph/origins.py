"""Where basic operations come from, and the labels that kernels get from it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from msc.dialects.ms.attributes import MS_ORIGIN

LABEL_LENGTH = 48
"""Longer labels are cut; they become parts of C names."""


def origin_of(op: Operation) -> str:
    """The short name of the operation that the user wrote."""
    attribute = op.attributes.get(MS_ORIGIN)
    return attribute.data if isinstance(attribute, StringAttr) else op.name.removeprefix("ms.")


def label_of(ops: Iterable[Operation]) -> str:
    """The origins of a kernel's operations in order, without repetitions: `conv2d_add_relu`."""
    names = [name for name, _ in groupby(map(origin_of, ops))]
    label = names[0]
    for name in names[1:]:
        if len(label) + len(name) + 1 > LABEL_LENGTH - 4:
            return f"{label}_etc"
        label = f"{label}_{name}"
    return label
