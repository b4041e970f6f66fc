"""Constants as C literals: exact, shortest, and of the right type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType, no_c_form, value_type
from msc.codegen.c.values import CExpression, Precedence


def constant(op: ConstantOp, prelude: Prelude) -> CExpression:
    """The value of an `arith.constant`; a dense splat stays scalar text."""
    type_ = value_type(op.result.type)
    numbers = _numbers(op.value)
    if not type_.is_vector or all(_same(n, numbers[0]) for n in numbers):
        return _splat(numbers[0], type_, prelude)
    prelude.type_name(type_)
    items = ", ".join(literal(n, type_.element, prelude).text for n in numbers)
    return CExpression(f"({type_.name}){{{items}}}", type_)


def _splat(number: float, type_: CType, prelude: Prelude) -> CExpression:
    value = literal(number, type_.element, prelude)
    ordered = not math.isnan(number)
    return CExpression(value.text, type_, value.precedence, splat=type_.is_vector, ordered=ordered)


def _numbers(attribute: Attribute) -> Sequence[float]:
    match attribute:
        case IntegerAttr():
            return [attribute.value.data]
        case FloatAttr():
            return [attribute.value.data]
        case DenseIntOrFPElementsAttr():
            return list(cast(Sequence[float], attribute.get_values()))
        case _:
            raise no_c_form(f"the constant {attribute}")


def _same(a: float, b: float) -> bool:
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)


def literal(number: float, type_: CType, prelude: Prelude) -> CExpression:
    """A number as an expression of a scalar type."""
    if type_.base == "i1":
        prelude.headers.add("stdbool.h")
        return CExpression("true" if number else "false", type_)
    if not type_.is_float:
        return _integer(int(number), type_)
    if type_.base == "bf16":
        return CExpression(f"{_bf16_bits(number):#06x}", type_)
    if type_.base == "f16":
        return CExpression(f"{int(np.float16(number).view(np.uint16)):#06x}", type_)
    text = _float_text(number, type_, prelude)
    return CExpression(text, type_, Precedence.UNARY if text.startswith("-") else Precedence.PRIMARY)


def _integer(number: int, type_: CType) -> CExpression:
    bits = type_.bits
    if not type_.base.startswith("u"):
        number = (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    if number == -(1 << (bits - 1)) and bits >= 32:
        return CExpression(f"INT{bits}_MIN", type_)
    return CExpression(str(number), type_, Precedence.UNARY if number < 0 else Precedence.PRIMARY)


def _float_text(number: float, type_: CType, prelude: Prelude) -> str:
    suffix = "" if type_.base == "f64" else "f"
    if math.isnan(number) or math.isinf(number):
        prelude.headers.add("math.h")
        name = "NAN" if math.isnan(number) else "INFINITY"
        return f"-{name}" if math.copysign(1, number) < 0 and name == "INFINITY" else name
    rounded = number if type_.base == "f64" else np.float32(number)
    if math.isinf(float(rounded)):
        prelude.headers.add("math.h")
        return "INFINITY" if number > 0 else "-INFINITY"
    text = str(rounded)
    return text + suffix if "." in text or "e" in text else f"{text}.0{suffix}"


def _bf16_bits(number: float) -> int:
    bits = int(np.float32(number).view(np.uint32))
    if math.isnan(number):
        return (bits >> 16) | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF
