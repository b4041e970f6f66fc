"""Instructions of a machine (`[unit]`): in registers an inline function, in memory one of loops over tiles.

A lane of a factor has its terms side by side, the first one in the lowest bits. Where no instruction has as many lanes,
and for C compilers without it, C computes what the unit does: the last product first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from msc.codegen.c.arithmetic import vector_text
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.text import sections
from msc.codegen.c.types import CArrayType, CType, no_c_form
from msc.codegen.c.values import CExpression, call, cast
from msc.dialects.loop import AccessOp, AddProductsOp, ForOp
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


@dataclass(frozen=True)
class TileProduct:
    """What loops on a unit compute: how many rows, columns and terms, and how the operands lie.

    `first` are the accesses to the first elements of a, b and c, `rows` the bytes between rows of each; `taps` are how
    many there are of two further loops over terms, and how many bytes these move a and b.
    """

    variables: Sequence[ForOp]
    first: tuple[AccessOp, AccessOp, AccessOp]
    rows: tuple[int, int, int]
    sizes: tuple[int, int, int]
    taps: Sequence[int]


def tile_product(op: ForOp, buffers: Callable[[SSAValue], CArrayType]) -> TileProduct | None:
    """The product that a loop and those right in it compute, if it is as functions on tiles take it."""
    nest = [op]
    while isinstance(inner := nest[-1].body.block.first_op, ForOp) and inner is nest[-1].body.block.last_op:
        nest.append(inner)
    accesses = [each for each in nest[-1].body.block.ops if isinstance(each, AccessOp)]
    counts = [loop.most_iterations or 0 for loop in nest]
    if len(accesses) != _ACCESSES or not all(counts):
        return None
    a, b = (each for each in accesses[:-1] if each.buffer is not accesses[-1].buffer)
    operands = a, b, accesses[-1]
    rows, columns, terms, taps = (1, 0, 0), 1, (1, 0), list[int]()
    for loop, count in zip(nest, counts, strict=True):
        match [_moves(each, loop, count, buffers(each.buffer)) for each in operands]:
            case [(step,), (0,), (apart,)]:
                rows = count, step, apart
            case [(0,), (4,), (4,)]:
                columns = count
            case [(1,), (1, group), (0,)]:
                terms = count, group
            case [(step,), (apart,), (0,)]:
                taps += [count, step, apart]
            case _:
                return None
    if len(taps) > _TAPS or terms[0] % 4:
        return None
    taps += [1, 0, 0] * ((_TAPS - len(taps)) // 3)
    return TileProduct(nest, operands, (rows[1], terms[1], rows[2]), (rows[0], columns, terms[0]), taps)


_ACCESSES, _TAPS = 4, 6
"""Loads of both factors and the sum, and a store; what two further loops over terms are told by."""


def _moves(access: AccessOp, loop: ForOp, count: int, buffer: CArrayType) -> tuple[int, ...]:
    """The bytes that an iteration moves an access; 1 and the bytes of a row where words of terms lie in rows."""
    strides = [stride for stride in buffer.known_strides if stride is not None]
    where = [int(value is loop.variable) for value in access.indices]
    if len(strides) < len(access.map.results):
        return ()

    def at(iteration: int) -> int:
        index = access.map.eval([iteration * each for each in where], [])
        return sum(k * stride for k, stride in zip(index, strides, strict=True)) * buffer.item_bytes

    places = [at(k) - at(0) for k in range(count)]
    step, group = (places[k] if count > k else 0 for k in (1, _WORD // 8))
    if all(place == step * k for k, place in enumerate(places)):
        return (step,)
    return (1, group) if all(place == k // 4 * group + k % 4 for k, place in enumerate(places)) else ()


def tile_function(prelude: Prelude, unit: Unit) -> str:
    """The name of the function of a unit on tiles, defined in the prelude."""
    name = f"{unit.name}_rows"
    if name not in prelude.instructions:
        text, types = sections("tiles.h"), {"ui8": "uint8_t", "i8": "int8_t"}
        prelude.includes.add(text["allowed"])
        prelude.instructions[name] = (
            text["product"]
            .replace("{name}", name)
            .replace("{a}", types[unit.a.types[0]])
            .replace("{b}", types[unit.b.types[0]])
            .replace("{multiply}", unit.text)
            .replace("{macros}", " && ".join(f"defined({macro})" for macro in unit.macros))
        )
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
