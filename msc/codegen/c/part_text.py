"""Loads and stores of the first lanes of a vector: where rows do not fill whole vectors, their ends.

x86 has instructions for 32 and 64 bits; elsewhere the lanes are moved one by one, which compilers unroll, as `count` is
a constant.
"""

from __future__ import annotations

from msc.codegen.c.types import CType

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
{begin}    for (int lane = 0; lane < count; ++lane)
        p[lane] = v[lane];
{end}}
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
    """The template of the load for vectors of a type."""
    found = _instructions(type_)
    return _guarded(_LOAD, found and f"return ({{v}}){found[0]};")


def store_part_text(type_: CType) -> str:
    """The template of the store for vectors of a type."""
    found = _instructions(type_)
    return _guarded(_STORE, found and f"{found[1]};")


def _guarded(text: str, statement: str | None) -> str:
    """The text with an instruction in front of the lanes one by one, where the machine has it."""
    if statement is None:
        return text.replace("{begin}", "").replace("{end}", "")
    feature = "__AVX512F__" if "512_mask" in statement else "__AVX2__"
    begin = f"#if defined({feature})\n    {statement}\n#else\n"
    return text.replace("{begin}", begin).replace("{end}", "#endif\n")


def _instructions(type_: CType) -> tuple[str, str] | None:
    """The load and the store of the machine for vectors of a type; both name floats, whatever the bits mean."""
    letter, real = {32: ("s", "float"), 64: ("d", "double")}.get(type_.bits, ("", ""))
    match type_.bits * type_.lanes if real else 0:
        case 512:
            mask = f"(uint{type_.lanes}_t)((1u << count) - 1)"
            load = f"__builtin_ia32_loadup{letter}512_mask((const {real} *)p, ({{r}}){{0}}, {mask})"
            return load, f"__builtin_ia32_storeup{letter}512_mask(({real} *)p, ({{r}})v, {mask})"
        case 128 | 256 as size:
            name, first = f"p{letter}{size if size > 128 else ''}", ", ".join(map(str, range(type_.lanes)))
            chosen = f"({{i}}){{{first}}} < count"
            load = f"__builtin_ia32_maskload{name}((const {{r}} *)p, {chosen})"
            return load, f"__builtin_ia32_maskstore{name}(({{r}} *)p, {chosen}, ({{r}})v)"
        case _:
            return None
