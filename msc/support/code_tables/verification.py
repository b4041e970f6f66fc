"""MSC02xx: shapes, dtypes and verification."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0200",
        "operation is not valid",
        "A rule of the operation marked is broken. The message states the rule.",
    ),
    Code(
        "MSC0201",
        "shape conflict",
        "The shapes of the operands, the properties and the result do not fit together. The message gives the"
        " shapes on both sides.",
    ),
    Code(
        "MSC0202",
        "dtype conflict",
        "The operation does not take this element type, or operands that must have the same element type have"
        " different ones. Insert an `ms.cast` where a conversion is meant.",
    ),
    Code(
        "MSC0203",
        "invalid property",
        "A property has a value outside its range, such as a stride of 0 or an axis beyond the rank.",
    ),
    Code(
        "MSC0204",
        "value does not dominate its use",
        "A value is used before the operation that defines it, or outside the region where it is defined.",
    ),
    Code(
        "MSC0205",
        "malformed structure",
        "A block lacks its terminator, a region has the wrong number of blocks, or a symbol is not defined or"
        " defined twice.",
    ),
    Code(
        "MSC0206",
        "tensor too large",
        "A tensor or buffer may have 2^40 elements. Check its dimensions: one is likely mistyped.",
    ),
    Code(
        "MSC0207",
        "dimension without a size",
        "An input has an open dimension, written `?`. msc compiles for sizes: `--dim batch=8` gives one, and "
        "`--dim batch=1..64` a range within which each call decides (in Python dims={'batch': (1, 64)}). The names of "
        "the open dimensions are in the input's attribute `ms.dims`; without one a dimension is called `input.0`.",
    ),
    Code(
        "MSC0208",
        "dimension that calls cannot decide",
        "A dimension was given a range (`--dim batch=1..64`), but the operation marked cannot be compiled for all sizes"
        " in it at once: its loops would not run over the beginning of each tensor, or the model computes something"
        " else at another size. Bind the dimension to one size.",
    ),
    Code(
        "MSC0209",
        "operation of another stage",
        "Every stage has a closed list of operations (`msc stages` shows the stages). The extension of the file, or "
        "`--from`, says of which stage it is; the operation marked belongs to another one, or stands where this one "
        "has none.",
    ),
)
