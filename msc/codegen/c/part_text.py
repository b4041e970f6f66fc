"""Loads and stores of the first lanes of a vector: where rows do not fill whole vectors, their ends.

`count` is a constant, so that what depends on it is decided by the C compiler. x86 has loads with a mask for 32 and 64
bits; elsewhere lanes are loaded one by one. Stores are made of halves, quarters, ... that are stored whole: a load of
what follows, the next row of an operation in place, would wait until a store with a mask has left the core.
"""

from __future__ import annotations

from msc.codegen.c.types import CType

SMALLEST_REGISTER_BITS = 128
"""Vectors that are no larger have no halves worth a store."""

_LOAD = """
/* The first lanes, fewer than all, and zeros. */
static inline {v} load_part_{f}(const {e} *p, int count)
{
{begin}    {v} v = {0};
    for (int lane = 0; lane < count; ++lane)
        v[lane] = p[lane];
    return v;
{end}}
"""
_STORE = """
/* The first lanes, fewer than all. */
static inline void store_part_{f}({e} *p, int count, {v} v)
{
    for (int lane = 0; lane < count; ++lane)
        p[lane] = v[lane];
}
"""
_STORE_OF_HALVES = """
/* The first lanes, fewer than all. */
static inline void store_part_{f}({e} *p, int count, {v} v)
{
    const {h} low = __builtin_shufflevector(v, v, {low});
    const {h} high = __builtin_shufflevector(v, v, {high});
    if (count >= {n} / 2)
        store_{hf}(p, low);
    if (count > {n} / 2)
        store_part_{hf}(p + {n} / 2, count - {n} / 2, high);
    if (count < {n} / 2)
        store_part_{hf}(p, count, low);
}
"""
LOAD_PART_STRIDED = """
/* The first lanes, fewer than all, and zeros. */
static inline {v} load_part_strided_{f}(const {e} *p, int64_t stride, int count)
{
    return ({v}){{strided_part}};
}
"""
STORE_PART_STRIDED = """
/* The first lanes, fewer than all. */
static inline void store_part_strided_{f}({e} *p, int64_t stride, int count, {v} v)
{
{scatter_part}
}
"""


def load_part_text(type_: CType) -> str:
    """The template of the load for vectors of a type: the machine's instruction in front of the lanes one by one."""
    load = _masked_load(type_)
    if load is None:
        return _LOAD.replace("{begin}", "").replace("{end}", "")
    feature = "__AVX512F__" if "512_mask" in load else "__AVX2__"
    begin = f"#if defined({feature})\n    return ({{v}}){load};\n#else\n"
    return _LOAD.replace("{begin}", begin).replace("{end}", "#endif\n")


def store_part_text(type_: CType) -> str:
    """The template of the store for vectors of a type."""
    return _STORE if type_.bits * type_.lanes <= SMALLEST_REGISTER_BITS else _STORE_OF_HALVES


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
