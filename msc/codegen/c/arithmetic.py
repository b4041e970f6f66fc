"""`arith` and `math` operations as C expressions, the same text for scalars and vectors wherever C allows.

A splat operand of a vector operation stays a scalar: GCC's vector types accept `scalar * vector`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast as typed

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from msc.analysis.index_ranges import wraps
from msc.codegen.c.literals import literal
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.quotients import inverse_of_divisor
from msc.codegen.c.types import CType, no_c_form, value_type
from msc.codegen.c.values import CExpression, Precedence, call, cast
from msc.dialects.loop import LanesOp, LoadOp
from msc.poly.scalar import OPERATORS

Rule = Callable[[Prelude, Operation, Sequence[CExpression]], CExpression]


def vector_text(prelude: Prelude, value: CExpression) -> CExpression:
    """The value as text that C sees as a vector: a splat is spread."""
    if not value.splat:
        return value
    if value.text in ("0.0f", "0.0", "0"):
        return replace(value, text=f"({prelude.type_name(value.type)}){{0}}", splat=False)
    name = prelude.function("splat", value.type)
    return CExpression(f"{name}({value.text})", value.type, reads=value.reads, ordered=value.ordered)


def infix(operator: str, precedence: Precedence, a: CExpression, b: CExpression, type_: CType) -> CExpression:
    """`a operator b`; both splats give a splat."""
    nested = precedence if precedence in (Precedence.SUM, Precedence.PRODUCT) else Precedence.UNARY
    right = Precedence(nested + 1)
    text = f"{a.at(nested)} {operator} {b.at(right)}"
    return CExpression(text, type_, precedence, type_.is_vector and a.splat and b.splat, a.reads or b.reads)


def _shape(operands: Sequence[CExpression]) -> CType:
    """The vector type of the operands if one is a vector, else the type of the first."""
    return next((v.type for v in operands if v.type.is_vector), operands[0].type)


def _float(
    operator: str, precedence: Precedence, prelude: Prelude, op: Operation, operands: Sequence[CExpression]
) -> CExpression:
    return infix(operator, precedence, operands[0], operands[1], _shape(operands))


def _quotient(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    inverse, type_ = inverse_of_divisor(op), _shape(operands)
    if inverse is None:
        return _float("/", Precedence.PRODUCT, prelude, op, operands)
    x, divisor = vector_text(prelude, operands[0]), operands[1].scalar
    return call(prelude.function("quotient", type_), type_, x, divisor, literal(inverse, type_.element, prelude))


def _integer(
    operator: str, precedence: Precedence, prelude: Prelude, op: Operation, operands: Sequence[CExpression]
) -> CExpression:
    """Wrapping: computed on unsigned integers. Indices that are known not to overflow stay as they are."""
    type_ = _shape(operands)
    if type_.base == "index" and not type_.is_vector and not wraps(op):
        return infix(operator, precedence, operands[0], operands[1], type_)
    a, b = (_to_unsigned(prelude, v) for v in operands)
    prelude.type_name(type_)
    return cast(type_, infix(operator, precedence, a, b, type_.unsigned))


def _product(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """A product of integers; of vectors of bytes that were widened, by the instructions that multiply halves."""
    type_ = _shape(operands)
    if type_.base != "i32" or not type_.is_vector or not all(map(_half_name, op.operands)):
        return _integer("*", Precedence.PRODUCT, prelude, op, operands)
    if all(v.splat for v in operands):
        return _integer("*", Precedence.PRODUCT, prelude, op, operands)
    signed = all(_half_name(v) == "arith.extsi" for v in op.operands)
    name = prelude.function("product_of_signed_halves" if signed else "product_of_halves", type_)
    return call(name, type_, *(vector_text(prelude, v) for v in operands))


def _half_name(value: SSAValue) -> str:
    """The operation that widened an integer which 16 bits with a sign hold; empty for other values."""
    op = value.owner
    while isinstance(op, vector.BroadcastOp):
        op = op.source.owner
    match op:
        case LanesOp():
            name, source = op.operation.data, op.arguments[0]
        case arith.ExtSIOp() | arith.ExtUIOp():
            name, source = op.name, op.input
        case _:
            return ""
    bits = value_type(source.type).bits
    return name if (name == "arith.extsi" and bits in (8, 16)) or (name == "arith.extui" and bits == 8) else ""


def _to_unsigned(prelude: Prelude, value: CExpression) -> CExpression:
    scalar_or_vector = value.scalar if value.splat else value
    unsigned = scalar_or_vector.type.unsigned
    prelude.type_name(unsigned)
    return replace(cast(unsigned, scalar_or_vector), type=value.type.unsigned, splat=value.splat)


def is_boolean(value: CExpression) -> bool:
    """Whether the value is a boolean, or a vector of them."""
    return value.type.mask or value.type.base == "i1"


def mask_text(prelude: Prelude, value: CExpression, bits: int) -> CExpression:
    """Booleans as a mask with lanes of some width: a splat is spread, each lane 0 or -1."""
    if not value.splat:
        return resize_mask(prelude, value, bits)
    mask = CType(f"i{bits}", value.type.lanes, True)
    constant = {"true": "-1", "false": "0"}.get(value.text)
    text = constant or f"-{value.at(Precedence.PRIMARY)}"
    return CExpression(f"{prelude.function('splat', replace(mask, mask=False))}({text})", mask, reads=value.reads)


def _as_masks(prelude: Prelude, values: Sequence[CExpression]) -> list[CExpression]:
    """Vectors of booleans as masks of one width, that of the first which has one."""
    bits = next((v.type.bits for v in values if v.is_vector_text), 8)
    return [mask_text(prelude, v, bits) for v in values]


def _bitwise(
    operator: str, precedence: Precedence, prelude: Prelude, op: Operation, operands: Sequence[CExpression]
) -> CExpression:
    if operator == "^" and operands[1].text == "true":
        return _not(operands[0])
    if any(v.is_vector_text for v in operands):
        boolean = is_boolean(operands[0])
        operands = _as_masks(prelude, operands) if boolean else [vector_text(prelude, v) for v in operands]
    return infix(operator, precedence, operands[0], operands[1], _shape(operands))


def _function(name: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """An inline function of the prelude; vectors of integers go lane by lane where there is no vector form."""
    type_ = _shape(operands)
    if type_.is_vector and all(v.splat for v in operands):
        scalar = call(prelude.function(name, type_.element), type_.element, *(v.scalar for v in operands))
        return replace(scalar, type=type_, splat=True)
    if type_.is_vector:
        operands = [vector_text(prelude, v) for v in operands]
    return call(prelude.function(name, type_), type_, *operands)


def _shift(name: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """A function that is defined for all amounts, or the operator where the amount is a constant below the width."""
    type_, (value, amount) = _shape(operands), operands
    if amount.ordered and amount.text.isdigit() and int(amount.text) < type_.bits:
        if name == "shrs":
            return infix(">>", Precedence.SHIFT, value, amount, type_)
        moved = infix("<<" if name == "shl" else ">>", Precedence.SHIFT, _to_unsigned(prelude, value), amount, type_)
        prelude.type_name(type_)
        return cast(type_, replace(moved, type=type_.unsigned))
    prelude.type_name(type_.unsigned)
    return _function(name, prelude, op, operands)


def _defined(name: str, operator: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """Integer division: functions that are defined everywhere, or the operator where a constant is safe."""
    if operands[1].ordered and operands[1].text.isdigit() and int(operands[1].text) > 0:
        return infix(operator, Precedence.PRODUCT, operands[0], operands[1], _shape(operands))
    return _function(name, prelude, op, operands)


def _extremum(name: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """Maximumf and minimumf: NaN if either operand is; -0.0 and 0.0 are equal, as in NumPy and ONNX."""
    a, b = operands
    if a.ordered:
        a, b = b, a
    return _function(f"{name}_number" if b.ordered else name, prelude, op, [a, b])


def _number_extremum(relation: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """Maxnumf and minnumf: the other operand if one is NaN."""
    a, b = operands
    keep = infix(relation, Precedence.RELATION, a, b, _mask(_shape(operands)))
    lost = infix("!=", Precedence.EQUALITY, b, b, _mask(_shape(operands)))
    return select(prelude, infix("|", Precedence.OR, keep, lost, keep.type), a, b)


def _mask(type_: CType) -> CType:
    return CType(f"i{type_.bits}", type_.lanes, True) if type_.is_vector else CType("i1")


def _negate(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    value = operands[0]
    return replace(value, text=f"-{value.at(Precedence.PRIMARY)}", precedence=Precedence.UNARY)


def _absolute(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    value = operands[0]
    if value.is_vector_text:
        prelude.type_name(value.type.unsigned)
        return call(prelude.function("abs", value.type), value.type, value)
    prelude.headers.add("math.h")
    return replace(
        value, text=f"{'fabs' if value.type.base == 'f64' else 'fabsf'}({value.text})", precedence=Precedence.PRIMARY
    )


def _copysign(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    type_ = _shape(operands)
    if type_.is_vector:
        return call(prelude.function("copysign", type_), type_, *(vector_text(prelude, v) for v in operands))
    prelude.headers.add("math.h")
    return call("copysign" if type_.base == "f64" else "copysignf", type_, *operands)


def _multiply_add(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """`a * b + c`, which -ffp-contract=fast makes one instruction wherever the machine has it."""
    a, b, c = operands
    type_ = _shape(operands)
    product = infix("*", Precedence.PRODUCT, a, b, type_ if type_.is_vector else a.type)
    product = replace(product, splat=a.splat and b.splat)
    return infix("+", Precedence.SUM, product, c, type_)


def select(prelude: Prelude, mask: CExpression, a: CExpression, b: CExpression) -> CExpression:
    """`mask ? a : b`; a scalar condition chooses whole vectors."""
    if is_boolean(a) and (a.is_vector_text or b.is_vector_text or mask.is_vector_text):
        a, b = _as_masks(prelude, [a, b])
    type_ = _shape([a, b])
    if not mask.is_vector_text:
        return _conditional(prelude, mask, a, b, type_)
    mask = resize_mask(prelude, mask, type_.bits)
    function = prelude.function("select", type_)
    return call(function, type_, mask, vector_text(prelude, a), vector_text(prelude, b))


def _conditional(prelude: Prelude, condition: CExpression, a: CExpression, b: CExpression, type_: CType) -> CExpression:
    if type_.is_vector and not (a.splat and b.splat):
        a, b = vector_text(prelude, a), vector_text(prelude, b)
    up = Precedence.EQUALITY
    text = f"{condition.at(up)} ? {a.at(up)} : {b.at(up)}"
    reads = condition.reads or a.reads or b.reads
    return CExpression(text, type_, Precedence.CONDITIONAL, a.splat and b.splat, reads)


def resize_mask(prelude: Prelude, mask: CExpression, bits: int) -> CExpression:
    """A mask with lanes of another width."""
    if mask.type.bits == bits:
        return mask
    wanted = CType(f"i{bits}", mask.type.lanes, True)
    function, text = "__builtin_convertvector", mask.text
    if bits > mask.type.bits:
        prelude.plain.add("wider_mask")
        function = "msc_wider_mask"
        # A comma in braces would end the argument of a macro.
        text = f"({text})" if "{" in text else text
    return CExpression(f"{function}({text}, {prelude.type_name(wanted)})", wanted, reads=mask.reads)


_INTEGER_RELATIONS = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">=", 6: "<", 7: "<=", 8: ">", 9: ">="}

_TRUE_OF_EQUALS = frozenset({0, 3, 5, 7, 9})
"""Of the predicates; C compilers warn of a comparison of an expression with itself."""

_DECIDED_BY_ZERO = {
    (6, False, True): False, (9, False, True): True, (8, True, False): False, (7, True, False): True,
}  # fmt: skip
"""Unsigned comparisons (predicate, which operand is 0) that C compilers warn of, as they have one outcome."""


def decided_comparison(op: Operation) -> bool | None:
    """What a comparison of integers is whatever its operands are: of a value with itself, of an unsigned one with 0.

    C compilers warn of those, so it is written as its outcome and its operands are not read.
    """
    name = op.operation.data if isinstance(op, LanesOp) else op.name
    if name != "arith.cmpi":
        return None
    a, b = op.operands
    if _is_same(a, b):
        return _predicate(op) in _TRUE_OF_EQUALS
    return _DECIDED_BY_ZERO.get((_predicate(op), _is_zero(a), _is_zero(b)))


def _is_same(a: SSAValue, b: SSAValue) -> bool:
    """Whether two values are one, or are loaded from one place, one right after the other."""
    first, then = a.owner, b.owner
    if a is b or not isinstance(first, LoadOp) or not isinstance(then, LoadOp) or first.next_op is not then:
        return a is b
    return first.operands == then.operands and first.properties == then.properties


def _is_zero(value: SSAValue) -> bool:
    if isinstance(value.owner, vector.BroadcastOp):
        value = value.owner.source
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, IntegerAttr) and constant.value.data == 0


def _compare_integers(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    predicate = _predicate(op)
    if is_boolean(operands[0]) and any(v.is_vector_text for v in operands):
        operands = _as_masks(prelude, operands)
    type_ = _shape(operands)
    if operands[0].text == operands[1].text:
        return always(prelude, predicate in _TRUE_OF_EQUALS, type_)
    if predicate >= 6:
        decided = _DECIDED_BY_ZERO.get((predicate, operands[0].text == "0", operands[1].text == "0"))
        if decided is not None:
            return always(prelude, decided, type_)
        operands = [_to_unsigned(prelude, v) for v in operands]
    return _comparison(prelude, _INTEGER_RELATIONS[predicate], operands[0], operands[1], type_)


def _comparison(prelude: Prelude, relation: str, a: CExpression, b: CExpression, type_: CType) -> CExpression:
    precedence = Precedence.EQUALITY if relation in ("==", "!=") else Precedence.RELATION
    mask = _mask(type_)
    prelude.type_name(mask)
    if type_.is_vector and a.splat and b.splat:
        a = vector_text(prelude, a)
    return infix(relation, precedence, a, b, mask)


_FLOAT_RELATIONS: Mapping[int, tuple[str, bool]] = {
    1: ("==", False), 2: (">", False), 3: (">=", False), 4: ("<", False), 5: ("<=", False),
    9: ("<=", True), 10: ("<", True), 11: (">=", True), 12: (">", True), 13: ("!=", False),
}  # fmt: skip
"""The C relation of a predicate, and whether it is that relation's negation: `ugt` is not `<=`."""


def _compare_floats(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    predicate, type_ = _predicate(op), _shape(operands)
    a, b = operands
    if predicate in _FLOAT_RELATIONS:
        relation, negated = _FLOAT_RELATIONS[predicate]
        result = _comparison(prelude, relation, a, b, type_)
        return _not(result) if negated else result
    return _compound_comparison(prelude, predicate, a, b, type_)


def _compound_comparison(prelude: Prelude, predicate: int, a: CExpression, b: CExpression, type_: CType) -> CExpression:
    def both(
        first: tuple[str, CExpression, CExpression], operator: str, second: tuple[str, CExpression, CExpression]
    ) -> CExpression:
        left, right = (_comparison(prelude, r, x, y, type_) for r, x, y in (first, second))
        precedence = Precedence.AND if operator == "&" else Precedence.OR
        return infix(operator, precedence, left, right, left.type)

    match predicate:
        case 6:
            return both(("<", a, b), "|", (">", a, b))
        case 7:
            return both(("==", a, a), "&", ("==", b, b))
        case 8:
            return _not(both(("<", a, b), "|", (">", a, b)))
        case 14:
            return both(("!=", a, a), "|", ("!=", b, b))
        case _:
            return always(prelude, predicate == 15, type_)


def always(prelude: Prelude, truth: bool, compared: CType) -> CExpression:
    """The outcome of a comparison of values of a type."""
    mask = _mask(compared)
    if not mask.is_vector:
        prelude.headers.add("stdbool.h")
        return CExpression("true" if truth else "false", mask)
    zero = CExpression(f"({prelude.type_name(mask)}){{0}}", mask)
    return _not(zero) if truth else zero


def _not(value: CExpression) -> CExpression:
    sign = "~" if value.is_vector_text else "!"
    return replace(value, text=f"{sign}{value.at(Precedence.UNARY)}", precedence=Precedence.UNARY)


def _predicate(op: Operation) -> int:
    return typed(IntegerAttr, op.properties["predicate"]).value.data


def _select(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    return select(prelude, *operands)


def _math(name: str, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """A function of the vector math library."""
    type_ = _shape(operands)
    splat = type_.is_vector and all(v.splat for v in operands)
    target = type_.element if splat else type_
    function = prelude.math_function(name, target)
    if function is None:
        raise no_c_form(f"{op.name} on {type_.base}")
    arguments = operands if splat or not type_.is_vector else [vector_text(prelude, v) for v in operands]
    return replace(call(function, type_, *arguments), splat=splat)


RULES: Mapping[str, Rule] = {
    **{o.mlir: partial(_math, o.c or o.name) for o in OPERATORS.values() if o.mlir.startswith("math.")},
    **{f"math.{name}": partial(_math, name) for name in ("cbrt", "log10")},
    "arith.addf": partial(_float, "+", Precedence.SUM),
    "arith.subf": partial(_float, "-", Precedence.SUM),
    "arith.mulf": partial(_float, "*", Precedence.PRODUCT),
    "arith.divf": _quotient,
    "arith.negf": _negate,
    "arith.maximumf": partial(_extremum, "max"),
    "arith.minimumf": partial(_extremum, "min"),
    "arith.maxnumf": partial(_number_extremum, ">"),
    "arith.minnumf": partial(_number_extremum, "<"),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.select": _select,
    "arith.addi": partial(_integer, "+", Precedence.SUM),
    "arith.subi": partial(_integer, "-", Precedence.SUM),
    "arith.muli": _product,
    "arith.andi": partial(_bitwise, "&", Precedence.AND),
    "arith.ori": partial(_bitwise, "|", Precedence.OR),
    "arith.xori": partial(_bitwise, "^", Precedence.XOR),
    "arith.divsi": partial(_defined, "div", "/"),
    "arith.remsi": partial(_defined, "rem", "%"),
    "arith.divui": partial(_function, "divu"),
    "arith.remui": partial(_function, "remu"),
    "arith.floordivsi": partial(_function, "floordiv"),
    "arith.ceildivsi": partial(_function, "ceildiv"),
    "arith.shli": partial(_shift, "shl"),
    "arith.shrsi": partial(_shift, "shrs"),
    "arith.shrui": partial(_shift, "shru"),
    "arith.remf": partial(_math, "fmod"),
    "loop.dot_bytes": partial(_function, "dot_bytes"),
    "math.ipowi": partial(_function, "ipow"),
    "math.absf": _absolute,
    "math.absi": partial(_function, "absi"),
    "math.round": partial(_function, "round"),
    "math.copysign": _copysign,
    "math.fma": _multiply_add,
    "vector.fma": _multiply_add,
}
"""By operation name."""
