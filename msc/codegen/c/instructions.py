"""Instructions of a machine (`[unit]`) that sum products on registers, each as an inline function.

A lane of a factor has its terms side by side, the first one in the lowest bits. Where no instruction has as many lanes,
and for C compilers without it, C computes what the unit does: the last product first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msc.codegen.c.arithmetic import vector_text
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType, no_c_form
from msc.codegen.c.values import CExpression, call, cast
from msc.dialects.loop import AddProductsOp
from msc.targets.abilities import BITS, Unit

_WORD = 32


def add_products(
    prelude: Prelude, op: AddProductsOp, total: CExpression, factors: Sequence[Sequence[CExpression]]
) -> CExpression:
    """A call of the instruction's function; a factor is its terms, or one word of them all.

    Raises MSC0905 for an instruction that the machine lacks.
    """
    unit = prelude.units.get(op.unit.data)
    if unit is None:
        raise no_c_form(f"the instruction {op.unit.data}, which the machine lacks,")
    sums = total.type
    sides = (terms[0] if len(terms) == 1 else _side(prelude, terms, sums.lanes) for terms in factors)
    arguments = (total, *sides)
    if sums.is_vector:
        arguments = tuple(vector_text(prelude, each) for each in arguments)
    return call(instruction(prelude, unit, op.element_types, sums), sums, *arguments)


def _side(prelude: Prelude, terms: Sequence[CExpression], lanes: int) -> CExpression:
    """The terms of a factor in the lanes of one value; of scalars the same in all lanes."""
    type_ = CType("u32", terms[0].type.lanes)
    narrow = [cast(each.type.unsigned, each) if each.type.base == "i16" else each for each in terms]
    joined = call(prelude.function({2: "pair", 4: "quad"}[len(terms)], type_), type_, *narrow)
    return (
        joined
        if type_.is_vector or not lanes
        else CExpression(joined.text, CType("u32", lanes), splat=True, reads=joined.reads)
    )


def instruction(prelude: Prelude, unit: Unit, types: Sequence[str], sums: CType) -> str:
    """The name of the function of a unit, defined in the prelude."""
    name = f"{unit.name}_{sums.name if sums.is_vector else sums.base}"
    if name not in prelude.instructions:
        words = CType("u32", sums.lanes)
        c, word, _ = (prelude.type_name(each) for each in (sums, words, words.signed))
        own = unit.text_for(max(1, sums.lanes))
        body = "\n".join(f"    {line}" for line in _computed(prelude, types, sums)) + "\n    return c;\n"
        macros = " && ".join(f"defined({macro})" for macro in unit.macros)
        if own:
            text = f"    return ({c}){own};\n"
            body = f"#if {macros}\n{text}#else\n{body}#endif\n" if macros else text
        if own and unit.header:
            include = f"#include <{unit.header}>\n"
            prelude.includes.add(f"#if {macros}\n{include}#endif\n" if macros else include)
        prelude.instructions[name] = f"static inline {c} {name}({c} c, {word} a, {word} b)\n{{\n{body}}}\n"
    return name


def _computed(prelude: Prelude, types: Sequence[str], sums: CType) -> Iterator[str]:
    """The statements that add the products, one by one."""
    words = CType("u32", sums.lanes)
    for k in reversed(range(_WORD // BITS[types[0]])):
        a, b = (_term(prelude, name, k, type_, sums) for name, type_ in zip("ab", types, strict=True))
        yield f"c += {a} * {b};" if sums.is_float else f"c = ({sums.name})(({words.name})c + {a} * {b});"


def _term(prelude: Prelude, name: str, k: int, type_: str, sums: CType) -> str:
    """A term of a factor, as wide as a sum; integers without a sign, whose products wrap."""
    bits, lanes = BITS[type_], sums.lanes
    words, above = CType("u32", lanes), _WORD - bits - k * bits
    moved = f"({name} >> {k * bits})" if k else name
    match type_:
        case "bf16" | "f16":
            half = f"__builtin_convertvector({moved}, {prelude.type_name(CType('u16', lanes))})" if lanes else moved
            return f"{prelude.function(f'from_{type_}', CType('f32', lanes))}({half})"
        case _ if type_.startswith("u"):
            return f"({moved} & {(1 << bits) - 1:#x}u)"
        case _:
            left = f"({name} << {above})" if above else name
            return f"({words.name})(({words.signed.name}){left} >> {_WORD - bits})"
