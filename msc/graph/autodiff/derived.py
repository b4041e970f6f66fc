"""Gradients derived from compute definitions.

Of an operation that computes each element from the elements at the same place, the derivative becomes element-wise
operations, which fuse with what is around them; of any other one it becomes an `ms.compute` of the adjoint statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from xdsl.ir import SSAValue

from msc.dialects import ms
from msc.dialects.element_types import FAMILIES, element_type
from msc.dialects.ms import arithmetic, elementwise
from msc.dialects.ms.base import BasicOp, MsOp
from msc.dialects.ms.generic import ComputeOp, statements_text
from msc.graph.autodiff.emitting import GradientEmitter
from msc.graph.emitter import Emitter
from msc.poly.adjoint import Differentiated, adjoint
from msc.poly.compute import Statement, affine_map, broadcast_map, dims
from msc.poly.derivative import adjoints, factors_absorbed
from msc.poly.model import renumber
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar, reads


@cache
def _operation(op: str, dtype: str) -> type[MsOp] | None:
    """What a scalar operator on an element type is on tensors."""
    if op == "select":
        return elementwise.SelectOp
    classes = (made for made in ms.OPERATIONS if issubclass(made, elementwise.ElementwiseOp))
    named = (made for made in classes if (found := made.operator()) is not None and found.name == op)
    return next((made for made in named if dtype in FAMILIES[made.DTYPES]), None)


def is_pointwise(op: BasicOp) -> bool:
    """Whether each element of the result comes from the elements of the operands at the same place, broadcast."""
    statements = op.compute()
    if len(statements) != 1 or len(op.results) != 1:
        return False
    (statement,), shape = statements, op.result_shape()
    if statement.combine is not None or statement.extents != shape:
        return False
    if statement.write != affine_map(len(shape), dims(len(shape))) or not _has_operations(statement.body):
        return False
    return all(_is_broadcast(read, op, shape) for read in reads(statement.body))


def _is_broadcast(read: Read, op: BasicOp, shape: tuple[int, ...]) -> bool:
    operand = op.shape(read.operand)
    return not read.indirect and len(operand) <= len(shape) and read.index == broadcast_map(operand, shape)


def _has_operations(scalar: Scalar) -> bool:
    match scalar:
        case Apply():
            known = _operation(scalar.op, scalar.args[-1].dtype) is not None
            return known and all(map(_has_operations, scalar.args))
        case Cast():
            return not scalar.bits and _has_operations(scalar.arg)
        case Index():
            return False
        case Read() | Constant():
            return True


def derived_gradient(op: BasicOp, emit: GradientEmitter, gradients: Sequence[SSAValue]) -> list[SSAValue | None]:
    """What the wanted operands get. Raises NoAdjoint."""
    if is_pointwise(op):
        return _pointwise(op, emit, gradients[0])
    operator, inputs = differentiated(op), (*op.operands, *op.results, *gradients)
    return [
        computed(adjoint(operator, k), op.shape(k), op.dtype(k), inputs, emit) if emit.wants(k) else None
        for k in range(len(op.operands))
    ]


def differentiated(op: BasicOp) -> Differentiated:
    """What the adjoint of an operation is made of."""
    operands = [(op.shape(k), op.dtype(k)) for k in range(len(op.operands))]
    results = [(op.result_shape(k), op.result_dtype(k)) for k in range(len(op.results))]
    return Differentiated(op.compute(), operands, results)


def computed(
    statements: Sequence[Statement], shape: tuple[int, ...], dtype: str, inputs: Sequence[SSAValue], emit: Emitter
) -> SSAValue:
    """The tensor that statements write, of those of the inputs that they read."""
    used = sorted({read.operand for s in statements for read in reads(s.body)})
    places = {operand: k for k, operand in enumerate(used)}
    numbers = [places.get(k, 0) for k in range(len(inputs))]
    renumbered = [replace(s, body=renumber(s.body, numbers)) for s in statements]
    operands = [inputs[k] for k in used]
    text = statements_text(renumbered)
    return emit(ComputeOp, *operands, shape=list(shape), dtype=element_type(dtype), statements=text)


def _pointwise(op: BasicOp, emit: GradientEmitter, gradient: SSAValue) -> list[SSAValue | None]:
    (statement,), shape = op.compute(), op.result_shape()
    seed = Read(len(op.operands), affine_map(len(shape), dims(len(shape))), op.result_dtype())
    values = _Values(emit, (*op.operands, gradient), {statement.body: op.results[0]})
    found: list[SSAValue | None] = [None] * len(op.operands)
    for read, scalar in adjoints(statement.body, seed):
        if emit.wants(read.operand):
            part = emit.sum_to(values.of(scalar), op.shape(read.operand))
            found[read.operand] = emit.added(found[read.operand], part)
    return found


class _Values:
    """Scalars as operations on whole tensors, each once; `known` are those that there are already."""

    def __init__(self, emit: GradientEmitter, operands: Sequence[SSAValue], known: Mapping[Scalar, SSAValue]) -> None:
        self._emit, self._operands, self._known = emit, operands, dict(known)

    def of(self, scalar: Scalar) -> SSAValue:
        """The tensor of the values of a scalar; it broadcasts to the box."""
        if scalar not in self._known:
            self._known[scalar] = self._written(scalar)
        return self._known[scalar]

    def _written(self, scalar: Scalar) -> SSAValue:
        absorbed = factors_absorbed(scalar)
        if absorbed is not None:
            return self._emit(arithmetic.MulNoNanOp, *map(self.of, absorbed))
        match scalar:
            case Read():
                return self._operands[scalar.operand]
            case Constant():
                return self._emit.scalar(scalar.value, scalar.dtype)
            case Cast():
                return self._emit(elementwise.CastOp, self.of(scalar.arg), dtype=element_type(scalar.dtype))
            case Apply():
                operation = _operation(scalar.op, scalar.args[-1].dtype)
                assert operation is not None
                return self._emit(operation, *map(self.of, scalar.args))
            case Index():
                raise TypeError("an index is no element of an operand")
