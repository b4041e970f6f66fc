"""Every operation of the ms dialect in many shapes: the cases that compiled programs are tested on.

A case is the text of one operation on operands `%0`, `%1`, ... and their types. In a template `T` stands for an element
type, `I` for a signed integer type (indices); every type that the operation accepts is tried, so a type that an
operation learns is tested without a change here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from hypothesis import strategies as st

from msc.dialects.element_types import ELEMENT_TYPES
from msc.dialects.ms.collectives import COLLECTIVES
from msc.support.diagnostics import MscError
from tests.unit.compiled.operand_shapes import OTHERS, POOLS
from tests.unit.compiled.programs import Case, program_text
from tests.unit.dialects.conftest import CASES

UNARY = (
    "neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf sigmoid softplus floor ceil round trunc relu is_nan is_inf identity logical_not bitwise_not "
    "stop_gradient silu relu6 mish softsign selu hard_swish leaky_relu elu celu hard_sigmoid gelu logit"
).split()
BINARY = (
    "add sub mul div floor_div mod rem pow maximum minimum equal not_equal less less_equal greater greater_equal atan2 "
    "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor shift_left shift_right "
    "mul_no_nan xlogy log_add_exp binary_cross_entropy"
).split()
UNARY_SHAPES = ("", "1", "7", "3x1x5", "4x33", "2x0x3")
BINARY_SHAPES = (("", ""), ("5", ""), ("3x1", "2x1x4"), ("4x33", "33"), ("1x7", "3x1"), ("2x3x17", "2x3x17"))
REDUCTIONS = (
    ("", ""),
    ("{axis = 0}", "5"),
    ("{axis = 1}", "3x2x4"),
    ("{axis = [0, -1]}", "7x1x9"),
    ("{axis = -1}", "2x3x65"),
    ("{axis = 0}", "37x5"),
    ("{axis = [0, 1], keep_dims = true}", "1x1"),
    ("", "33x4"),
    ("{axis = 1, keep_dims = true}", "3x0"),
    ("{axis = 0}", "2x0"),
    ("{axis = [1]}", "1x131"),
)
ARGUMENTS = (
    ("{axis = 0}", "1"),
    ("{axis = 0}", "13"),
    ("{axis = 0}", "5x33"),
    ("{keep_dims = true}", "3x17"),
    ("{axis = 1, select_last = true}", "2x9x3"),
)
RANDOM_SIZES = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 33, 65)
MOST_ELEMENTS = 20_000
OF_SEVERAL_RANKS = frozenset(op.name for op in COLLECTIVES)
"""Programs with them need MPI: `tests/unit/parallel` compiles them, and looks at their adjoints, for several ranks."""
IOTAS = ("[1]", "[7]", "[33]", "[3, 5]", "[0]", "[2, 17]")


def templates() -> Iterator[Case]:
    """Every case before types are filled in."""
    for name in UNARY:
        yield from ((f"ms.{name} %0", _type(shape)) for shape in UNARY_SHAPES)
    for name in BINARY:
        yield from ((f"ms.{name} %0, %1", " ".join(map(_type, shapes))) for shapes in BINARY_SHAPES)
    for name in "sum max min prod mean all any".split():
        yield from ((f"ms.reduce_{name} %0 {properties}", _type(shape)) for properties, shape in REDUCTIONS)
    for name in ("argmax", "argmin"):
        yield from ((f"ms.{name} %0 {properties}", _type(shape)) for properties, shape in ARGUMENTS)
    for axes, pools in POOLS.items():
        for kind in ("max", "avg", "sum"):
            yield from ((f"ms.{kind}_pool{axes}d %0 {properties}", _type(shape)) for properties, shape in pools)
    for names, cases in OTHERS.items():
        for name in names.split():
            yield from ((_written(name, properties, types), types) for properties, types in cases)
    for shape in IOTAS:
        yield from ((f"ms.iota {{shape = {shape}, axis = -1, dtype = {t}}}", "") for t in ELEMENT_TYPES)
    for target in ELEMENT_TYPES:
        for name in ("cast", "bit_cast"):
            yield from ((f"ms.{name} %0 {{dtype = {target}}}", _type(shape)) for shape in UNARY_SHAPES)
    for operation, types in CASES:
        if operation.split()[0] not in OF_SEVERAL_RANKS:
            yield operation, re.sub(r"\b(f32|i32)\b|(?<=x)(f32|i32)\b", "T", types)


def _type(shape: str) -> str:
    return f"{shape}xT" if shape else "T"


def _written(name: str, properties: str, types: str) -> str:
    operands = ", ".join(f"%{i}" for i in range(len(types.split())))
    return f"ms.{name} {operands} {properties}"


@cache
def cases_of(dtype: str) -> tuple[Case, ...]:
    """The cases that an element type makes legal."""
    filled = dict.fromkeys(_filled(operation, types, dtype) for operation, types in templates())
    return tuple(case for case in filled if _is_legal(case))


def _filled(operation: str, types: str, dtype: str) -> Case:
    """The element type in place of T; indices take turns through the integer types."""
    index = ("i64", "i32", "i8", "i16")[len(operation) % 4]
    return operation.strip(), " ".join(_with(type_, dtype, index) for type_ in types.split())


def _with(type_: str, dtype: str, index: str) -> str:
    *sizes, last = type_.split("x")
    return "x".join([*sizes, {"T": dtype, "I": index}.get(last, last)])


@st.composite
def random_cases(draw: st.DrawFn, count: int = 30, among: Sequence[Case] = ()) -> list[Case]:
    """Cases with other sizes, the same for all operands where they were the same, and other numbers in properties.

    They are made from those `among` which they are, of any element type unless given.
    """
    cases: list[Case] = []
    for _ in range(count):
        operation, types = draw(st.sampled_from(among or cases_of(draw(st.sampled_from(list(ELEMENT_TYPES))))))
        sizes = {
            size: str(draw(st.sampled_from(RANDOM_SIZES))) for size in re.findall(r"\b\d+(?=x)|(?<=x)\d+(?=x)", types)
        }
        types = " ".join("x".join(sizes.get(part, part) for part in type_.split("x")) for type_ in types.split())
        if draw(st.integers(0, 3)) == 0:
            operation = _with_other_numbers(operation, lambda: str(draw(st.integers(-1, 4))))
        cases.append((operation, types))
    return [case for case in dict.fromkeys(cases) if _is_legal(case) and _is_small(case)]


def _with_other_numbers(operation: str, number: Callable[[], str]) -> str:
    head, brace, properties = operation.partition("{")
    return head + brace + re.sub(r"(?<![\w.])-?\d+(?![\w.])", lambda _: number(), properties)


def _is_small(case: Case) -> bool:
    """A few seconds in the interpreter are too many."""
    types = re.findall(r"tensor<([^>]*)>", program_text([case]))
    return all(math.prod(map(int, type_.split("x")[:-1])) < MOST_ELEMENTS for type_ in types)


def _is_legal(case: Case) -> bool:
    try:
        program_text([case])
    except MscError:
        return False
    return True
