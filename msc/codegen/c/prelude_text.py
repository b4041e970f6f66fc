"""The inline functions of generated C as templates over a type: `{v}` the type, `{e}` its element, `{n}` its lanes.

`{i}` and `{u}` are the signed and unsigned integer types of the same shape (masks are `{i}`), `{h}` the vector of half
the lanes, `{f}` the suffix of the function's own name, `{hf}` the suffix for the half.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.integer_text import INTEGER_TEMPLATES
from msc.codegen.c.part_text import load_part_text, store_part_text
from msc.codegen.c.template import Template
from msc.codegen.c.text import sections, sections_of
from msc.codegen.c.transposed_text import TRANSPOSED_TEMPLATES
from msc.codegen.c.types import CType
from msc.dialects.calls.library_call import CALLS, FAMILIES
from msc.support.escaping import comment_text

# f16 and bf16, which are storage only: 16 bits in memory, converted to f32 to compute.
#
# f16 goes through the machine's conversion where it has one (F16C of x86, AArch64), else through integer arithmetic
# that rounds alike; `_Float16` would be shorter, but older compilers lack it on x86, and on AArch64 convert lane by
# lane.
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


# Bytes as words of 32 bits and back, in vectors: GCC finds no instruction for more than a factor of two.
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


VECTORS = sections("vectors.h")


def _instruction(name: str, relation: str, instruction: str) -> Template:
    """What one instruction of x86 gives. GCC finds it for scalars, and for vectors in none of their operations."""
    return Template(
        f"""
/* a {comment_text(relation)} b ? a : b, so b if either is NaN. */
static inline {{v}} {name}_{{f}}({{v}} a, {{v}} b)
{{
#if defined(__AVX512F__) && !defined(__clang__) && {{n}} * {{bits}} == 512
    return __builtin_ia32_{instruction}p{{s}}512_mask(a, b, b, -1, 4);
#elif defined(__AVX__) && {{n}} * {{bits}} == 256
    return __builtin_ia32_{instruction}p{{s}}256(a, b);
#elif defined(__SSE2__) && {{n}} * {{bits}} == 128
    return __builtin_ia32_{instruction}p{{s}}(a, b);
#else
    const {{i}} mask = a {relation} b;
    return ({{v}})((mask & ({{i}})a) ^ (~mask & ({{i}})b));
#endif
}}
"""
    )


def _or_aarch64(name: str, statement: str, or_avx512: str = "") -> str:
    """The statement, or one instruction, which gives NaN if either operand is: GCC finds it for scalars only."""
    return (
        "#if defined(__aarch64__) && !defined(__clang__) && {n} * {bits} == 128\n"
        f"    return __builtin_aarch64_f{name}_nanv{{n}}{{s}}f(a, b);\n{or_avx512}#else\n    {statement}\n#endif\n"
    )


def _or_masked(name: str) -> str:
    """Two instructions: b stays in the lanes that a mask leaves out. Of a select, GCC loads a b in memory twice."""
    ordered = "__builtin_ia32_cmpp{s}512_mask(b, b, 7, -1, 4)"
    return (
        "#elif defined(__AVX512F__) && !defined(__clang__) && {n} * {bits} == 512\n"
        f"    return __builtin_ia32_{name}p{{s}}512_mask(b, a, b, {ordered}, 4);\n"
    )


def _extremum(name: str, choice: str, relation: str) -> Template:
    """Max or min of floats, NaN if either is NaN.

    A reduction passes its result so far as ``a``. Only b is compared with itself, so the comparison waits for no step.
    """
    head = f"/* NaN if either is. */\nstatic inline {{v}} {name}_{{f}}({{v}} a, {{v}} b)\n{{\n"
    vectors = _or_aarch64(name, f"return select_{{f}}(b == b, {choice}_{{f}}(b, a), b);", _or_masked(name))
    return Template(
        f"{head}{vectors}}}\n",
        (choice, "select"),
        variants={0: f"{head}    return b {relation} a || b != b ? b : a;\n}}\n"},
    )


def _extremum_with_number(name: str, choice: str, relation: str) -> Template:
    """The same where b is known not to be NaN."""
    head = f"/* b is a number; NaN in a stays. */\nstatic inline {{v}} {name}_number_{{f}}({{v}} a, {{v}} b)\n{{\n"
    return Template(
        f"{head}{_or_aarch64(name, f'return {choice}_{{f}}(b, a);')}}}\n",
        (choice,),
        variants={0: f"{head}    return b {relation} a ? b : a;\n}}\n"},
    )


def _reduction(name: str, combine: str, function: str | None = None) -> Template:
    """Halves are combined until one lane is left: log2(lanes) steps, one fixed order on every machine.

    Four lanes are combined in place: vectors of two make compilers go through memory, and choices of scalars branch.
    """
    head = f"static inline {{e}} reduce_{name}_{{f}}({{v}} v)\n{{\n"
    functions = (function,) if function else ()
    halves = combine.format(a="low", b="high", t="{hf}")
    return Template(
        f"{head}    const {{h}} low = __builtin_shufflevector(v, v, {{low}});\n"
        f"    const {{h}} high = __builtin_shufflevector(v, v, {{high}});\n"
        f"    return reduce_{name}_{{hf}}({halves});\n}}\n",
        requires=functions,
        requires_half=(f"reduce_{name}", *functions),
        variants={
            4: f"{head}    const {{v}} w = {_swapped(combine, 'v', '2, 3, 0, 1')};\n"
            f"    return ({_swapped(combine, 'w', '1, 0, 3, 2')})[0];\n}}\n",
            2: f"{head}    return ({_swapped(combine, 'v', '1, 0')})[0];\n}}\n",
        },
    )


def _swapped(combine: str, vector: str, order: str) -> str:
    """A vector combined with its own lanes in another order."""
    other = f"__builtin_shufflevector({vector}, {vector}, {order})"
    return combine.format(a=vector, b=other, t="{f}")


def _library_templates() -> Mapping[str, Template]:
    """The functions of library calls."""
    functions = [*CALLS.values(), *(family for family, _ in FAMILIES.values())]
    texts = {function.text: (sections_of(function.text), function.headers) for function in functions}
    return {
        name: Template(text, tuple(part), headers=headers)
        for part, headers in texts.values()
        for name, text in part.items()
    }


def _of_signed_halves(text: str) -> str:
    """The product where both may be negative: the instruction adds that of the upper halves, so one of them is zero."""
    text = text.replace("product_of_halves", "product_of_signed_halves").replace("(halves)b", "(halves)(b & 0xffff)")
    return text.replace(", and that are not negative in one of both", "")


TEMPLATES: Mapping[str, Template] = {
    "load": Template(VECTORS["load"]),
    "store": Template(VECTORS["store"]),
    "load_part": Template(load_part_text),
    "store_part": Template(store_part_text, requires_half=("store", "store_part")),
    "load_part_strided": Template(VECTORS["load_part_strided"]),
    "store_part_strided": Template(VECTORS["store_part_strided"]),
    "load_even": Template(VECTORS["load_even"], ("load",)),
    "load_strided": Template(VECTORS["load_strided"]),
    "store_strided": Template(VECTORS["store_strided"]),
    "store_interleaved_2": Template(VECTORS["store_interleaved_2"], ("store",)),
    "store_interleaved_4": Template(VECTORS["store_interleaved_4"], ("store_interleaved_2",)),
    **TRANSPOSED_TEMPLATES,
    "splat": Template(VECTORS["splat"]),
    "select": Template(VECTORS["select"]),
    "abs": Template(VECTORS["abs"]),
    "copysign": Template(VECTORS["copysign"]),
    "greater": _instruction("greater", ">", "max"),
    "lesser": _instruction("lesser", "<", "min"),
    "max": _extremum("max", "greater", ">"),
    "min": _extremum("min", "lesser", "<"),
    "max_number": _extremum_with_number("max", "greater", ">"),
    "min_number": _extremum_with_number("min", "lesser", "<"),
    "reduce_add": _reduction("add", "{a} + {b}"),
    "reduce_mul": _reduction("mul", "{a} * {b}"),
    "reduce_and": _reduction("and", "{a} & {b}"),
    "reduce_or": _reduction("or", "{a} | {b}"),
    "reduce_xor": _reduction("xor", "{a} ^ {b}"),
    "reduce_max": _reduction("max", "max_{t}({a}, {b})", "max"),
    "reduce_min": _reduction("min", "min_{t}({a}, {b})", "min"),
    "product_of_halves": Template(VECTORS["product_of_halves"]),
    "product_of_signed_halves": Template(_of_signed_halves(VECTORS["product_of_halves"])),
    "quotient": Template(VECTORS["quotient"], ("splat", "greater", "lesser")),
    "absi": Template(VECTORS["absi"], variants={0: VECTORS["absi_scalar"]}),
    "round": Template(VECTORS["round"], headers=("math.h",), variants={0: VECTORS["round_scalar"]}),
    "reduce_larger": _reduction("larger", "select_{t}({a} > {b}, {a}, {b})", "select"),
    "reduce_smaller": _reduction("smaller", "select_{t}({a} < {b}, {a}, {b})", "select"),
    **INTEGER_TEMPLATES,
    **_library_templates(),
    **HALF_TEMPLATES,
    **BYTE_TEMPLATES,
}
"""By name, callees before callers."""

PLAIN = sections("plain.h")
"""Text that does not depend on a type, by name; emitted in the order of the names."""
