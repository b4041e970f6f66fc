"""Bytes as words of 32 bits and back, in vectors: GCC finds no instruction for more than a factor of two."""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.template import Template
from msc.codegen.c.types import CType

_BYTES = "    typedef char bytes __attribute__((vector_size(16)));\n"
_TWO = _BYTES + "    typedef long long two __attribute__((vector_size(16)));\n"
_FOUR = _BYTES + "    typedef int four __attribute__((vector_size(16)));\n"


def _widened(letter: str) -> dict[int, tuple[str, str]]:
    """By lanes the macro, and the statements that widen bytes x."""
    name = f"__builtin_ia32_pmov{letter}xbd"
    return {
        16: ("__AVX512F__", f"{_BYTES}    return ({{v}}){name}512_mask((bytes)x, ({{v}}){{0}}, -1);\n"),
        8: ("__AVX2__", f"{_TWO}    return ({{v}}){name}256((bytes)(two){{(long long)x, 0}});\n"),
        4: ("__SSE4_1__", f"{_FOUR}    return ({{v}}){name}128((bytes)(four){{(int)x}});\n"),
    }


_NARROWED = {
    16: ("__AVX512F__", f"{_BYTES}    return (i8x{{n}})__builtin_ia32_pmovdb512_mask(x, (bytes){{0}}, -1);\n"),
    8: (
        "__AVX512VL__",
        f"{_TWO}    return (i8x{{n}})((two)__builtin_ia32_pmovdb256_mask(x, (bytes){{0}}, -1))[0];\n",
    ),
    4: (
        "__AVX512VL__",
        f"{_FOUR}    return (i8x{{n}})((four)__builtin_ia32_pmovdb128_mask(x, (bytes){{0}}, -1))[0];\n",
    ),
}


_HELIUM = "#if defined(__ARM_FEATURE_MVE)\n#include <arm_mve.h>\n#endif\n\n"


def _template(
    head: str, ways: Mapping[int, tuple[str, str]], helium: str, steps: str, types: tuple[str, ...]
) -> Template:
    """Processors with MVE (`helium`) load four bytes as words, and store the lowest bytes of words."""

    def text(type_: CType) -> str:
        macro, own = ways.get(type_.lanes, ("", ""))
        plain = f"    return {steps};\n"
        if type_.lanes == 4:
            plain = f"#elif defined(__ARM_FEATURE_MVE)\n{helium}#else\n{plain}"
        elif macro:
            plain = f"#else\n{plain}"
        body = f"#if defined({macro}) && !defined(__clang__)\n{own}{plain}#endif\n" if macro else plain
        return f"{_HELIUM if type_.lanes == 4 else ''}{head}\n{{\n{body}}}\n"

    return Template(text, types=types)


BYTE_TEMPLATES: Mapping[str, Template] = {
    "from_i8": _template(
        "static inline {v} from_i8_{f}(i8x{n} x)",
        _widened("s"),
        "    return ({v})vldrbq_s32((const int8_t *)&x);\n",
        "__builtin_convertvector(__builtin_convertvector(x, i16x{n}), {v})",
        ("i8", "i16"),
    ),
    "from_u8": _template(
        "static inline {v} from_u8_{f}(u8x{n} x)",
        _widened("z"),
        "    return ({v})vldrbq_u32((const uint8_t *)&x);\n",
        "__builtin_convertvector(__builtin_convertvector(x, u16x{n}), {v})",
        ("u8", "u16"),
    ),
    "i8_from": _template(
        "static inline i8x{n} i8_from_{f}({v} x)",
        _NARROWED,
        "    i8x{n} low;\n    vstrbq_s32((int8_t *)&low, (int32x4_t)x);\n    return low;\n",
        "__builtin_convertvector(__builtin_convertvector(x, i16x{n}), i8x{n})",
        ("i8", "i16"),
    ),
}
"""Named by the bytes: `from_u8_i32x16` widens, `i8_from_i32x16` keeps the lowest bits."""
