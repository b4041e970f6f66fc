"""The inline functions of generated C as templates over a type: `{v}` the type, `{e}` its element, `{n}` its lanes.

`{i}` and `{u}` are the signed and unsigned integer types of the same shape (masks are `{i}`), `{h}` the vector of half
the lanes, `{f}` the suffix of the function's own name, `{hf}` the suffix for the half.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.half_text import HALF_TEMPLATES
from msc.codegen.c.integer_text import INTEGER_TEMPLATES
from msc.codegen.c.part_text import LOAD_PART_STRIDED, STORE_PART_STRIDED, load_part_text, store_part_text
from msc.codegen.c.template import Template

_LOAD = """
static inline {v} load_{f}(const {e} *p)
{
    return *(const {v}_u *)p;
}
"""
_STORE = """
static inline void store_{f}({e} *p, {v} v)
{
    *({v}_u *)p = v;
}
"""
_LOAD_EVEN = """
/* p[0], p[2], p[4], ...; reads nothing after the last of them. */
static inline {v} load_even_{f}(const {e} *p)
{
    return __builtin_shufflevector(load_{f}(p), load_{f}(p + {n} - 1), {even});
}
"""
_LOAD_STRIDED = """
static inline {v} load_strided_{f}(const {e} *p, int64_t stride)
{
    return ({v}){{strided}};
}
"""
_STORE_STRIDED = """
static inline void store_strided_{f}({e} *p, int64_t stride, {v} v)
{
{scatter}
}
"""
_SPLAT = """
static inline {v} splat_{f}({e} value)
{
    return value - ({v}){0};
}
"""
_SELECT = """
/* mask ? a : b, lane by lane; a mask is what a vector comparison gives. GCC makes one blend of `^`, not of `|`. */
static inline {v} select_{f}({i} mask, {v} a, {v} b)
{
    return ({v})((mask & ({i})a) ^ (~mask & ({i})b));
}
"""


def _instruction(name: str, relation: str, instruction: str) -> Template:
    """What one instruction of x86 gives. GCC finds it for scalars, and for vectors in none of their operations."""
    return Template(
        f"""
/* a {relation} b ? a : b, so b if either is NaN. */
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


def _or_aarch64(name: str, statement: str) -> str:
    """The statement, or one instruction, which gives NaN if either operand is: GCC finds it for scalars only."""
    return (
        "#if defined(__aarch64__) && !defined(__clang__) && {n} * {bits} == 128\n"
        f"    return __builtin_aarch64_f{name}_nanv{{n}}{{s}}f(a, b);\n#else\n    {statement}\n#endif\n"
    )


def _extremum(name: str, choice: str, relation: str) -> Template:
    """Max or min of floats, NaN if either is NaN."""
    head = f"/* NaN if either is. */\nstatic inline {{v}} {name}_{{f}}({{v}} a, {{v}} b)\n{{\n"
    vectors = _or_aarch64(name, f"return select_{{f}}(a == a, {choice}_{{f}}(a, b), a);")
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


_ABSI = """
/* The absolute value; that of the least integer wraps to itself. */
static inline {v} absi_{f}({v} x)
{
    const {u} sign = ({u})(x < 0);
    return ({v})((({u})x ^ sign) - sign);
}
"""
_ABSI_SCALAR = """
/* The absolute value; that of the least integer wraps to itself. */
static inline {v} absi_{f}({v} x)
{
    return x < 0 ? ({v})(0 - ({ue})x) : x;
}
"""
_ROUND = """
static inline {v} round_{f}({v} x)
{
    {v} r = x;
    for (int lane = 0; lane < {n}; ++lane)
        r[lane] = ({e})round(x[lane]);
    return r;
}
"""
_ROUND_SCALAR = """
static inline {v} round_{f}({v} x)
{
    return ({v})round(x);
}
"""
_ABS = """
static inline {v} abs_{f}({v} x)
{
    return ({v})(({u})x & (({u}){0} + (({ue})-1 >> 1)));
}
"""
_COPYSIGN = """
static inline {v} copysign_{f}({v} magnitude, {v} sign)
{
    const {u} bit = ({u}){0} + (({ue})1 << ({bits} - 1));
    return ({v})((({u})magnitude & ~bit) | (({u})sign & bit));
}
"""


TEMPLATES: Mapping[str, Template] = {
    "load": Template(_LOAD),
    "store": Template(_STORE),
    "load_part": Template(load_part_text),
    "store_part": Template(store_part_text, requires_half=("store", "store_part")),
    "load_part_strided": Template(LOAD_PART_STRIDED),
    "store_part_strided": Template(STORE_PART_STRIDED),
    "load_even": Template(_LOAD_EVEN, ("load",)),
    "load_strided": Template(_LOAD_STRIDED),
    "store_strided": Template(_STORE_STRIDED),
    "splat": Template(_SPLAT),
    "select": Template(_SELECT),
    "abs": Template(_ABS),
    "copysign": Template(_COPYSIGN),
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
    "absi": Template(_ABSI, variants={0: _ABSI_SCALAR}),
    "round": Template(_ROUND, headers=("math.h",), variants={0: _ROUND_SCALAR}),
    "reduce_larger": _reduction("larger", "select_{t}({a} > {b}, {a}, {b})", "select"),
    "reduce_smaller": _reduction("smaller", "select_{t}({a} < {b}, {a}, {b})", "select"),
    **INTEGER_TEMPLATES,
    **HALF_TEMPLATES,
}
"""By name, callees before callers."""

PLAIN: Mapping[str, str] = {
    "psabi": """/* About passing wide vectors to functions: here only functions of this file do, all of them inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"
""",
    "scheduling": """/* Loads stay where they are used: all of a register tile's ahead would not fit the registers. */
#if defined(__aarch64__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
""",
    "floor_div": """/* Quotient and remainder rounded towards minus infinity; b > 0. */
static inline int64_t msc_floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static inline int64_t msc_floor_mod(int64_t a, int64_t b)
{
    return a - msc_floor_div(a, b) * b;
}
""",
    "bounds": """static inline int64_t msc_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t msc_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
""",
    "prefetch": """/* Ask for the cache line so many bytes after p; it may lie past the array, as nothing is read. */
static inline void msc_prefetch(const void *p, uintptr_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + bytes));
}
""",
    "pragma": """#define MSC_PRAGMA(text) _Pragma(#text)
""",
    "pragma_unroll": """/* The next loop has n iterations, and its counter selects registers: it is unrolled whole. */
#if defined(__clang__)
#define MSC_UNROLL(n) MSC_PRAGMA(clang loop unroll(full))
#else
#define MSC_UNROLL(n) MSC_PRAGMA(GCC unroll n)
#endif
""",
    "subnormals": """/* The bits of a mode that take zeros for subnormal operands and results. */
#if defined(__SSE__)
#define MSC_FLUSH 0x8040
#else
#define MSC_FLUSH (1 << 24)
#endif

/* How this thread computes with floating-point numbers. */
static inline uint64_t msc_mode(void)
{
    uint64_t mode = 0;
#if defined(__SSE__)
    mode = __builtin_ia32_stmxcsr();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
#endif
    return mode;
}

/* No access to memory moves from one mode to another. */
static inline void msc_set_mode(uint64_t mode)
{
    __asm__ volatile("" ::: "memory");
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
#else
    (void)mode;
#endif
    __asm__ volatile("" ::: "memory");
}
""",
    "wider_mask": """/* A mask with wider lanes, made anew where clang 14 extends some of four bytes with zeros. */
#if defined(__clang__) && defined(__aarch64__)
#define msc_wider_mask(mask, type) (__builtin_convertvector(mask, type) != 0)
#else
#define msc_wider_mask(mask, type) __builtin_convertvector(mask, type)
#endif
""",
}
"""Text that does not depend on a type, by name; emitted in the order of the names."""
