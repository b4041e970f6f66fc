"""f16 and bf16, which are storage only: 16 bits in memory, converted to f32 to compute.

f16 goes through the machine's conversion where it has one (F16C of x86, AArch64), else through integer arithmetic that
rounds alike; `_Float16` would be shorter, but older compilers lack it on x86, and on AArch64 convert lane by lane.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.template import Template
from msc.codegen.c.text import sections

HALF = sections("half.h")


def _split(head: str, function: str, half: str) -> str:
    """Sixteen lanes as two times eight."""
    return (
        f"{head}\n{{\n"
        f"    const {half} low = __builtin_shufflevector(x, x, {{low}});\n"
        f"    const {half} high = __builtin_shufflevector(x, x, {{high}});\n"
        f"    return __builtin_shufflevector({function}(low), {function}(high), {{low}}, {{high}});\n}}\n"
    )


def _with_instruction(software: str, feature: str, instruction: str) -> str:
    """The machine's conversion under `#ifdef`, with the arithmetic as the other branch."""
    head, body = software.strip("\n").split("\n{\n")
    return f"{head}\n{{\n#ifdef {feature}\n    {instruction}\n#else\n{body.removesuffix('}')}#endif\n}}\n"


def _aarch64(software: str, instruction: str, result: str, operand: str) -> str:
    """Four lanes by an instruction that both compilers take as text."""
    statement = f'{result} y;\n    __asm__("{instruction}" : "=w"(y) : "w"({operand}));\n    return y;'
    return _with_instruction(software, "__AARCH64EL__", statement)


_FROM_F16 = Template(
    HALF["f16_to_f32_software"],
    requires_half=("from_f16",),
    variants={
        0: HALF["f16_to_f32_scalar"],
        4: _aarch64(HALF["f16_to_f32_software"], "fcvtl %0.4s, %1.4h", "f32x4", "x"),
        8: _with_instruction(HALF["f16_to_f32_software"], "__F16C__", "return __builtin_ia32_vcvtph2ps256((i16x8)x);"),
        16: _split("static inline f32x16 from_f16_f32x16(u16x16 x)", "from_f16_{hf}", "u16x8"),
    },
    types=("f32", "u16", "i16", "i32", "u32"),
)
_F16_FROM = Template(
    HALF["f32_to_f16_software"],
    requires_half=("f16_from",),
    variants={
        0: HALF["f32_to_f16_scalar"],
        4: _aarch64(HALF["f32_to_f16_software"], "fcvtn %0.4h, %1.4s", "u16x4", "value"),
        8: _with_instruction(
            HALF["f32_to_f16_software"],
            "__F16C__",
            "return (u16x8)__builtin_ia32_vcvtps2ph256(value, 0);",
        ),
        16: _split("static inline u16x16 f16_from_f32x16(f32x16 x)", "f16_from_{hf}", "f32x8"),
    },
    types=("f32", "u16", "i16", "i32", "u32"),
)

HALF_TEMPLATES: Mapping[str, Template] = {
    "from_f16": _FROM_F16,
    "f16_from": _F16_FROM,
    "bf16_from": Template(
        HALF["f32_to_bf16"],
        headers=("string.h",),
        variants={0: HALF["f32_to_bf16_scalar"]},
        types=("f32", "u16", "u32"),
    ),
    "from_bf16": Template(
        HALF["bf16_to_f32"],
        headers=("string.h",),
        variants={0: HALF["bf16_to_f32_scalar"]},
        types=("f32", "u16", "u32"),
    ),
    "pair": Template(HALF["pair"], variants={0: HALF["pair_scalar"]}, types=("u16", "u32")),
    "word": Template("", headers=("string.h",), variants={0: HALF["word_scalar"]}, types=("u32",)),
    "aligned_word": Template("", variants={0: HALF["aligned_word_scalar"]}, types=("u32",)),
    "quad": Template(HALF["quad"], variants={0: HALF["quad_scalar"]}, types=("i8", "u8", "u16", "u32")),
}
"""Named by the other type: `from_f16_f32x8` gives f32, `f16_from_f32x8` takes it."""
