"""MSC01xx: syntax and parsing."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES: tuple[Code, ...] = (
    Code(
        "MSC0100",
        "syntax error",
        "The text does not follow the grammar at the place marked. The message says what was expected there.",
    ),
    Code(
        "MSC0101",
        "unterminated string",
        "A string literal starts here and does not end on its line. Write a line break inside a string as \\n.",
    ),
    Code(
        "MSC0102",
        "unknown operation",
        "No dialect has an operation of this name. `msc opt --show-dialects` lists the dialects; the help "
        "line gives the nearest name.",
    ),
    Code(
        "MSC0103",
        "unknown type or attribute",
        "No dialect has a type or attribute of this name. The help line gives the nearest name.",
    ),
    Code(
        "MSC0104",
        "undefined value",
        "A %name is used that nothing defines. In a region, a value must be defined before its use, in the "
        "same region or an enclosing one.",
    ),
    Code(
        "MSC0105",
        "name defined twice",
        "Each %name, ^block and #alias may be defined once in its scope.",
    ),
    Code(
        "MSC0106",
        "nesting too deep",
        "Brackets and regions may nest 64 deep. Real models nest a few levels; deeper text is refused rather "
        "than exhausting the machine.",
    ),
    Code(
        "MSC0107",
        "number too long",
        "An integer literal may have 64 digits and a floating-point literal 1024 characters: no type of msc "
        "holds more.",
    ),
    Code(
        "MSC0108",
        "too many elements in a literal",
        "A dense literal may have 65536 elements written out, and 1048576 as one repeated value "
        "or in hexadecimal. Put larger data in the safetensors file and declare an "
        "`ms.parameter`.",
    ),
    Code(
        "MSC0109",
        "value used with two types",
        "The same %name is written with two different types. Leave the types out to have them inferred, or "
        "correct the one marked.",
    ),
    Code(
        "MSC0110",
        "unknown property",
        "The operation has no property of this name. The help line gives the nearest name.",
    ),
    Code(
        "MSC0112",
        "dense literals do not fit their type",
        "The number of elements, their nesting or their kind does not agree with the tensor type of the literal.",
    ),
    Code(
        "MSC0190",
        "the parser failed",
        "The text is not valid, and the parser could not say why in better words. The position is where it "
        "stopped. Please report the input, so that it gets a message of its own.",
    ),
)
