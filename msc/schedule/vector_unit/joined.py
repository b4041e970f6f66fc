"""Statements that one instruction computes together: a product, and the sum that takes it (`vmadd`, `vaxpy`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msc.poly.model import KernelModel, KernelStatement
from msc.poly.scalar import Apply, Constant, Read, reads
from msc.schedule.vector_unit.axes import Axes

_FLOATS = ("f16", "f32")


@dataclass(frozen=True)
class ScaleAndShift:
    """`whole * factor + shift`, where `whole` has all axes of the result and nothing needs it afterwards."""

    whole: Read
    factor: Read
    shift: Read


@dataclass(frozen=True)
class Scaled:
    """`whole + scaled * factor` with a literal, where `whole` has all axes of the result; `scaled` may have fewer.

    Where `whole` is a literal too, the result's place holds it before `scaled` is known: one wait less.
    """

    whole: Read | Constant
    scaled: Read
    factor: float


def joined_statements(model: KernelModel, axes: Axes) -> Mapping[int, ScaleAndShift | Scaled]:
    """By the number of the product: those that the next statement adds something to, and nothing else reads."""
    found = {
        number: _joined(model, axes, number) or _scaled(model, axes, number)
        for number in range(len(model.statements) - 1)
    }
    return {number: joined for number, joined in found.items() if joined is not None}


def _joined(model: KernelModel, axes: Axes, number: int) -> ScaleAndShift | None:
    product, total = model.statements[number : number + 2]
    factors, summands = _operands(model, number, "mul"), _operands(model, number + 1, "add")
    arrays, made = axes.arrays, product.target
    if not factors or not summands or model.arrays[made].kind != "internal" or arrays[made] != arrays[total.target]:
        return None
    shifts = [read for read in summands if read.operand != made]
    later = model.statements[number + 2 :]
    wholes = [r for r in factors if arrays[r.operand] == arrays[made]]
    if len(shifts) != 1 or not wholes or any(r.operand == made for s in later for r in reads(s.body)):
        return None
    whole = wholes[0]
    factor = next((read for read in factors if read is not whole), whole)
    if factor.operand == whole.operand or shifts[0].operand == whole.operand or any(s.target == made for s in later):
        return None
    return ScaleAndShift(whole, factor, shifts[0])


def _scaled(model: KernelModel, axes: Axes, number: int) -> Scaled | None:
    product, total = model.statements[number : number + 2]
    literal, made = _times_literal(product), product.target
    later = model.statements[number + 2 :]
    alone = not any(made in {s.target, *(r.operand for r in reads(s.body))} for s in later)
    if literal is None or model.arrays[made].kind != "internal" or not alone:
        return None
    scaled, factor = literal
    whole, sign = _beside(model, total, made)
    if whole is None or model.arrays[scaled.operand].dtype != model.arrays[total.target].dtype:
        return None
    own = axes.arrays[whole.operand if isinstance(whole, Read) else made]
    fits = own == axes.arrays[total.target] == axes.statements[number + 1]
    apart = not isinstance(whole, Read) or whole.operand not in (made, scaled.operand)
    same = axes.arrays[scaled.operand] == axes.arrays[made]
    return Scaled(whole, scaled, sign * factor) if fits and apart and same else None


def _beside(model: KernelModel, total: KernelStatement, made: int) -> tuple[Read | Constant | None, float]:
    """What a statement adds an array to, or takes it from, and the sign of the array; None for another statement."""
    body = total.body
    if total.combine is not None or not isinstance(body, Apply) or body.dtype not in _FLOATS:
        return None, 1.0
    types = {model.arrays[array].dtype for array in (total.target, *(read.operand for read in reads(body)))}
    match body.op, body.args:
        case "add", (Read(operand=operand), Read() | Constant() as other) if operand == made and len(types) == 1:
            return other, 1.0
        case "add", (Read() | Constant() as other, Read(operand=operand)) if operand == made and len(types) == 1:
            return other, 1.0
        case "sub", (Read() | Constant() as other, Read(operand=operand)) if operand == made and len(types) == 1:
            return other, -1.0
        case _:
            return None, 1.0


def _times_literal(statement: KernelStatement) -> tuple[Read, float] | None:
    """An array and the literal that a statement multiplies it by."""
    body = statement.body
    if statement.combine is not None or not isinstance(body, Apply) or body.op != "mul":
        return None
    match body.args:
        case (Read() as array, Constant() as literal) | (Constant() as literal, Read() as array):
            return array, float(literal.value)
        case _:
            return None


def _operands(model: KernelModel, number: int, op: str) -> list[Read]:
    """The two arrays that a statement multiplies or adds, in one type of float; none where it does something else."""
    statement = model.statements[number]
    body = statement.body
    if statement.combine is not None or not isinstance(body, Apply) or body.op != op:
        return []
    found = [arg for arg in body.args if isinstance(arg, Read)]
    types = {model.arrays[array].dtype for array in (statement.target, *(read.operand for read in found))}
    return found if len(found) == 2 and len(types) == 1 and types <= set(_FLOATS) else []
