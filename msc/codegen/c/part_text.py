"""Loads and stores of the first lanes of a vector: where rows do not fill whole vectors, their ends.

`count` is a constant, so that what depends on it is decided by the C compiler. x86 has loads with a mask for 32 and 64
bits; elsewhere lanes are loaded one by one. Stores are made of halves, quarters, ... that are stored whole: a load of
what follows, the next row of an operation in place, would wait until a store with a mask has left the core.
"""

from __future__ import annotations

from msc.codegen.c.text import sections
from msc.codegen.c.types import CType

VECTORS = sections("vectors.h")

SMALLEST_REGISTER_BITS = 128
"""Vectors that are no larger have no halves worth a store."""


def load_part_text(type_: CType) -> str:
    """The template of the load for vectors of a type: the machine's instruction in front of the lanes one by one."""
    load = _masked_load(type_)
    if load is None:
        return VECTORS["load_part"].replace("{begin}", "").replace("{end}", "")
    feature = "__AVX512F__" if "512_mask" in load else "__AVX2__"
    begin = f"#if defined({feature})\n    return ({{v}}){load};\n#else\n"
    return VECTORS["load_part"].replace("{begin}", begin).replace("{end}", "#endif\n")


def store_part_text(type_: CType) -> str:
    """The template of the store for vectors of a type."""
    return (
        VECTORS["store_part"] if type_.bits * type_.lanes <= SMALLEST_REGISTER_BITS else VECTORS["store_part_of_halves"]
    )


def _masked_load(type_: CType) -> str | None:
    """The load of the machine for vectors of a type; it names floats, whatever the bits mean."""
    letter, real = {32: ("s", "float"), 64: ("d", "double")}.get(type_.bits, ("", ""))
    match type_.bits * type_.lanes if real else 0:
        case 512:
            mask = f"(uint{type_.lanes}_t)((1u << count) - 1)"
            return f"__builtin_ia32_loadup{letter}512_mask((const {real} *)p, ({{r}}){{0}}, {mask})"
        case 128 | 256 as size:
            name, first = f"p{letter}{size if size > 128 else ''}", ", ".join(map(str, range(type_.lanes)))
            return f"__builtin_ia32_maskload{name}((const {{r}} *)p, ({{i}}){{{first}}} < count)"
        case _:
            return None
