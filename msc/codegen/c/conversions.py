"""Conversions between element types, and between scalars and vectors.

Values that a conversion cannot represent: integers wrap; floats to narrow integers go through a wider one and wrap, as
NumPy does; f32 to bf16 rounds to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast as typed

from xdsl.dialects.vector import ReductionOp
from xdsl.ir import Operation

from msc.codegen.c.arithmetic import Rule, infix, is_boolean, mask_text, select, vector_text
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType, no_c_form, value_type
from msc.codegen.c.values import CExpression, Precedence, call, cast

Conversion = Callable[[Prelude, CExpression, CType], CExpression]


def _conversion(convert: Conversion, prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """A rule from a conversion of one value to a type; a splat is converted as the scalar that it is."""
    value, declared = operands[0], value_type(op.results[0].type)
    target = CType(declared.base, value.type.lanes)
    if value.splat:
        return replace(convert(prelude, value.scalar, target.element), type=target, splat=True)
    prelude.type_name(target)
    return convert(prelude, value, target)


def convert(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    """C's own conversion, lane by lane for vectors: of integers by at most a factor of two.

    GCC 12 converts bytes to words of 32 bits one by one: functions of the prelude name the instructions.
    """
    if not value.type.is_vector:
        if prelude.spelling(target) == prelude.spelling(value.type):
            return replace(value, type=target)
        return cast(target, value)
    source = value.type
    if source.base in ("i8", "u8") and target.base == "i32" and not source.mask:
        return call(prelude.function(f"from_{source.base}", target), target, value)
    if source.base == "i32" and target.base == "i8" and not source.mask:
        return call(prelude.function("i8_from", source), target, value)
    if _is_integer(source) and _is_integer(target) and _factor(source, target) > 2:
        bits = source.bits * 2 if target.bits > source.bits else source.bits // 2
        middle = replace(source, base=f"{source.base[0]}{bits}")
        prelude.type_name(middle)
        return convert(prelude, convert(prelude, value, middle), target)
    text = f"__builtin_convertvector({value.text}, {prelude.type_name(target)})"
    return CExpression(text, target, reads=value.reads)


def _factor(a: CType, b: CType) -> int:
    return max(a.bits, b.bits) // min(a.bits, b.bits)


def _is_integer(type_: CType) -> bool:
    return not type_.is_float and not type_.mask and type_.base not in ("i1", "index")


_STORAGE_ONLY = ("f16", "bf16")


def _extend_float(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    value = _computable(prelude, value)
    return value if value.type.base == target.base else convert(prelude, value, target)


def _computable(prelude: Prelude, value: CExpression) -> CExpression:
    """A half-width float as f32; everything else as it is."""
    if value.type.base not in _STORAGE_ONLY:
        return value
    single = CType("f32", value.type.lanes)
    return call(prelude.function(f"from_{value.type.base}", single), single, value)


def _truncate_float(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    if target.base not in _STORAGE_ONLY:
        return convert(prelude, value, target)
    single = CType("f32", value.type.lanes)
    value = _computable(prelude, value)
    if value.type.base != "f32":
        value = convert(prelude, value, single)
    return call(prelude.function(f"{target.base}_from", single), target, value)


def _to_unsigned(prelude: Prelude, value: CExpression) -> CExpression:
    prelude.type_name(value.type.unsigned)
    return cast(value.type.unsigned, value)


def _boolean_bits(prelude: Prelude, value: CExpression) -> CExpression:
    """A boolean as an integer 0 or 1 of the mask's width."""
    if not value.type.is_vector:
        return cast(CType("i32"), value)
    plain = replace(value.type, mask=False)
    return CExpression(f"{value.at(Precedence.UNARY)} & 1", plain, Precedence.AND, reads=value.reads)


def _signed(prelude: Prelude, value: CExpression) -> CExpression:
    """A value as a signed integer; `true`, whose only bit is the sign, is -1."""
    if value.type.base != "i1":
        return value
    bits = _boolean_bits(prelude, value)
    return CExpression(f"-{bits.at(Precedence.PRIMARY)}", CType("i32"), Precedence.UNARY, reads=bits.reads)


def _unsigned_to_float(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    source = _boolean_bits(prelude, value) if is_boolean(value) else _to_unsigned(prelude, value)
    return _number_to_float(prelude, source, target)


def _signed_to_float(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    return _number_to_float(prelude, _signed(prelude, value), target)


def _number_to_float(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    if target.base not in _STORAGE_ONLY:
        return convert(prelude, value, target)
    return _truncate_float(prelude, convert(prelude, value, replace(target, base="f32")), target)


def _float_to_signed(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    value = _computable(prelude, value)
    if target.bits < 32:
        value = convert(prelude, value, replace(target, base="i32"))
    return convert(prelude, value, target)


def _float_to_unsigned(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    value = _computable(prelude, value)
    if target.bits == 64:
        wide = replace(target, base="u64")
        return cast(target, call(prelude.function("u64_from", value.type), wide, value))
    wide = convert(prelude, value, replace(target, base="i64" if target.bits == 32 else "i32"))
    return convert(prelude, wide, target)


def _extend_signed(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    return convert(prelude, _signed(prelude, value), target)


def _extend_unsigned(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    if is_boolean(value):
        return convert(prelude, _boolean_bits(prelude, value), target)
    return convert(prelude, _to_unsigned(prelude, value), target)


def _truncate_integer(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    if target.base != "i1":
        return convert(prelude, value, target)
    if not value.type.is_vector:
        return CExpression(f"({value.at(Precedence.UNARY)} & 1) != 0", target, Precedence.EQUALITY, reads=value.reads)
    mask = replace(value.type, mask=True)
    return CExpression(f"-({value.at(Precedence.UNARY)} & 1)", mask, Precedence.UNARY, reads=value.reads)


def _index_cast_unsigned(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    return convert(prelude, _to_unsigned(prelude, value), target)


def _bit_cast(prelude: Prelude, value: CExpression, target: CType) -> CExpression:
    prelude.type_name(target)
    if value.type.is_vector or not (value.type.is_float or target.is_float):
        return cast(target, value)
    text = f"((union {{ {value.type.name} from; {target.name} to; }}){{{value.text}}}).to"
    return CExpression(text, target, reads=value.reads)


def _broadcast(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    value, type_ = operands[0], value_type(op.results[0].type)
    return value if value.type.is_vector else replace(value, type=type_, splat=True)


_INFIX_KINDS = {
    "add": ("+", Precedence.SUM), "mul": ("*", Precedence.PRODUCT),
    "and": ("&", Precedence.AND), "or": ("|", Precedence.OR), "xor": ("^", Precedence.XOR),
}  # fmt: skip
_EXTREMUM_KINDS = {"maximumf": "max", "minimumf": "min"}


_INTEGER_KINDS = {"maxsi": "larger", "minsi": "smaller", "maxui": "larger", "minui": "smaller"}


def _reduction(prelude: Prelude, op: Operation, operands: Sequence[CExpression]) -> CExpression:
    """All lanes combined in one named order, then with the accumulator if there is one."""
    kind = _reduction_kind(op)
    if is_boolean(operands[0]):
        return _boolean_reduction(prelude, kind, operands)
    vector = vector_text(prelude, operands[0])
    if kind in _INTEGER_KINDS or (kind in ("add", "mul") and not vector.type.is_float):
        total = _integer_reduction(prelude, kind, vector)
        return total if len(operands) == 1 else _wrapped(prelude, kind, operands[1], total)
    name = _EXTREMUM_KINDS.get(kind, kind)
    total = call(prelude.function(f"reduce_{name}", vector.type), vector.type.element, vector)
    return total if len(operands) == 1 else _accumulate(prelude, kind, operands[1], total)


def _boolean_reduction(prelude: Prelude, kind: str, operands: Sequence[CExpression]) -> CExpression:
    mask = mask_text(prelude, operands[0], operands[0].type.bits)
    lanes = call(prelude.function(f"reduce_{kind}", mask.type), mask.type.element, mask)
    total = replace(lanes, text=f"{lanes.text} != 0", type=CType("i1"), precedence=Precedence.EQUALITY)
    return total if len(operands) == 1 else infix(*_INFIX_KINDS[kind], operands[1], total, CType("i1"))


def _integer_reduction(prelude: Prelude, kind: str, vector: CExpression) -> CExpression:
    """Sums and products wrap, so they are those of unsigned integers."""
    chosen = vector if kind.endswith("si") else _to_unsigned(prelude, vector)
    name = prelude.function(f"reduce_{_INTEGER_KINDS.get(kind, kind)}", chosen.type)
    total = call(name, chosen.type.element, chosen)
    return total if chosen is vector else cast(vector.type.element, total)


def _wrapped(prelude: Prelude, kind: str, accumulator: CExpression, total: CExpression) -> CExpression:
    a, b = _to_unsigned(prelude, accumulator), _to_unsigned(prelude, total)
    return cast(total.type, infix(*_INFIX_KINDS[kind], a, b, total.type.unsigned))


def _reduction_kind(op: Operation) -> str:
    name = str(typed(ReductionOp, op).kind.data)
    alone = name in _INTEGER_KINDS and len(op.operands) == 1
    if name not in (*_INFIX_KINDS, *_EXTREMUM_KINDS) and not alone:
        raise no_c_form(f"vector.reduction <{name}>")
    return name


def _accumulate(prelude: Prelude, kind: str, accumulator: CExpression, total: CExpression) -> CExpression:
    if kind in _EXTREMUM_KINDS:
        return call(prelude.function(_EXTREMUM_KINDS[kind], total.type), total.type, accumulator, total)
    return infix(*_INFIX_KINDS[kind], accumulator, total, total.type)


def _integer_extremum(
    relation: str, unsigned: bool, prelude: Prelude, op: Operation, operands: Sequence[CExpression]
) -> CExpression:
    a, b = operands
    vector = a if a.type.is_vector else b
    if vector.type.is_vector:
        a, b = vector_text(prelude, a), vector_text(prelude, b)
    left, right = (_to_unsigned(prelude, a), _to_unsigned(prelude, b)) if unsigned else (a, b)
    mask = CType(f"i{a.type.bits}", a.type.lanes, True) if a.type.is_vector else CType("i1")
    prelude.type_name(mask)
    return select(prelude, infix(relation, Precedence.RELATION, left, right, mask), a, b)


CONVERSIONS: Mapping[str, Rule] = {
    "arith.extf": partial(_conversion, _extend_float),
    "arith.truncf": partial(_conversion, _truncate_float),
    "arith.sitofp": partial(_conversion, _signed_to_float),
    "arith.uitofp": partial(_conversion, _unsigned_to_float),
    "arith.fptosi": partial(_conversion, _float_to_signed),
    "arith.fptoui": partial(_conversion, _float_to_unsigned),
    "arith.extsi": partial(_conversion, _extend_signed),
    "arith.extui": partial(_conversion, _extend_unsigned),
    "arith.trunci": partial(_conversion, _truncate_integer),
    "arith.index_cast": partial(_conversion, convert),
    "arith.index_castui": partial(_conversion, _index_cast_unsigned),
    "arith.bitcast": partial(_conversion, _bit_cast),
    "vector.broadcast": _broadcast,
    "vector.reduction": _reduction,
    "arith.maxsi": partial(_integer_extremum, ">", False),
    "arith.minsi": partial(_integer_extremum, "<", False),
    "arith.maxui": partial(_integer_extremum, ">", True),
    "arith.minui": partial(_integer_extremum, "<", True),
}
"""By operation name."""
