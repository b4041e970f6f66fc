"""The inline functions of generated C as templates over a type: `{v}` the type, `{e}` its element, `{n}` its lanes.

`{i}` and `{u}` are the signed and unsigned integer types of the same shape (masks are `{i}`), `{h}` the vector of half
the lanes, `{f}` the suffix of the function's own name, `{hf}` the suffix for the half.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.byte_text import BYTE_TEMPLATES
from msc.codegen.c.half_text import HALF_TEMPLATES
from msc.codegen.c.integer_text import INTEGER_TEMPLATES
from msc.codegen.c.part_text import load_part_text, store_part_text
from msc.codegen.c.template import Template
from msc.codegen.c.text import sections, sections_of
from msc.codegen.c.transposed_text import TRANSPOSED_TEMPLATES
from msc.dialects.calls.library_call import CALLS, FAMILIES
from msc.support.escaping import comment_text

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
