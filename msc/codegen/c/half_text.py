"""f16 and bf16, which are storage only: 16 bits in memory, converted to f32 to compute.

f16 goes through the machine's conversion where it has one (F16C of x86, AArch64), else through integer arithmetic that
rounds alike; `_Float16` would be shorter, but older compilers lack it on x86, and on AArch64 convert lane by lane.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.template import Template

_BF16_TO_F32 = """
static inline f32x{n} from_bf16_f32x{n}(u16x{n} x)
{
    return (f32x{n})(__builtin_convertvector(x, u32x{n}) << 16);
}
"""
_BF16_TO_F32_SCALAR = """
static inline float from_bf16_f32(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
"""
_F32_TO_BF16 = """
/* To nearest, ties to even; NaN stays NaN. */
static inline u16x{n} bf16_from_f32x{n}(f32x{n} value)
{
    const u32x{n} bits = (u32x{n})value;
    const u32x{n} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const u32x{n} quiet = (bits >> 16) | 0x40u;
    const u32x{n} nan = (u32x{n})(value != value);
    return __builtin_convertvector((nan & quiet) | (~nan & rounded), u16x{n});
}
"""
_F32_TO_BF16_SCALAR = """
/* To nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
"""
_F16_TO_F32_SOFTWARE = """
static inline f32x{n} from_f16_f32x{n}(u16x{n} x)
{
    const u32x{n} wide = __builtin_convertvector(x, u32x{n});
    const u32x{n} magnitude = wide & 0x7fffu;
    const u32x{n} special = (u32x{n})(magnitude >= 0x7c00u) & 0x38000000u;
    const u32x{n} tiny = (u32x{n})(magnitude < 0x0400u);
    const u32x{n} subnormal = (u32x{n})(__builtin_convertvector((i32x{n})magnitude, f32x{n}) * 0x1p-24f);
    const u32x{n} normal = (magnitude << 13) + 0x38000000u + special;
    return (f32x{n})((tiny & subnormal) | (~tiny & normal) | (wide & 0x8000u) << 16);
}
"""
_F32_TO_F16_SOFTWARE = """
/* To nearest, ties to even; NaN stays NaN. */
static inline u16x{n} f16_from_f32x{n}(f32x{n} value)
{
    const u32x{n} bits = (u32x{n})value & 0x7fffffffu;
    const u32x{n} tiny = (u32x{n})(bits < 0x38800000u);
    const u32x{n} large = (u32x{n})(bits >= 0x47800000u);
    const u32x{n} nan = (u32x{n})(bits > 0x7f800000u);
    const u32x{n} subnormal = (u32x{n})((f32x{n})bits + 0.5f) - 0x3f000000u;
    const u32x{n} normal = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    const u32x{n} special = 0x7c00u | (nan & 0x200u);
    const u32x{n} finite = (tiny & subnormal) | (~tiny & normal);
    const u32x{n} sign = (u32x{n})value >> 16 & 0x8000u;
    return __builtin_convertvector((large & special) | (~large & finite) | sign, u16x{n});
}
"""
_F16_TO_F32_SCALAR = """
static inline float from_f16_f32(uint16_t x)
{
    return from_f16_f32x4((u16x4){x})[0];
}
"""
_F32_TO_F16_SCALAR = """
static inline uint16_t f16_from_f32(float value)
{
    return f16_from_f32x4((f32x4){value})[0];
}
"""


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
    _F16_TO_F32_SOFTWARE,
    requires_half=("from_f16",),
    variants={
        0: _F16_TO_F32_SCALAR,
        4: _aarch64(_F16_TO_F32_SOFTWARE, "fcvtl %0.4s, %1.4h", "f32x4", "x"),
        8: _with_instruction(_F16_TO_F32_SOFTWARE, "__F16C__", "return __builtin_ia32_vcvtph2ps256((i16x8)x);"),
        16: _split("static inline f32x16 from_f16_f32x16(u16x16 x)", "from_f16_{hf}", "u16x8"),
    },
    types=("f32", "u16", "i16", "i32", "u32"),
)
_F16_FROM = Template(
    _F32_TO_F16_SOFTWARE,
    requires_half=("f16_from",),
    variants={
        0: _F32_TO_F16_SCALAR,
        4: _aarch64(_F32_TO_F16_SOFTWARE, "fcvtn %0.4h, %1.4s", "u16x4", "value"),
        8: _with_instruction(
            _F32_TO_F16_SOFTWARE,
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
        _F32_TO_BF16, headers=("string.h",), variants={0: _F32_TO_BF16_SCALAR}, types=("f32", "u16", "u32")
    ),
    "from_bf16": Template(
        _BF16_TO_F32, headers=("string.h",), variants={0: _BF16_TO_F32_SCALAR}, types=("f32", "u16", "u32")
    ),
}
"""Named by the other type: `from_f16_f32x8` gives f32, `f16_from_f32x8` takes it."""
