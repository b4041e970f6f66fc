"""A `gk.kernel` as the polyhedral model sees it. Splat constants become literals; all else the compute definitions say."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from msc.dialects import gk, ms
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import BasicOp
from msc.ir.errors import InvalidStructure
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type
from msc.poly.model import Array, ArrayKind, KernelModel, KernelStatement, statements_of, with_accumulators
from msc.poly.scalar import Apply, Cast, Constant, Read, Scalar


def kernel_model(kernel: gk.KernelOp) -> KernelModel:
    """The arrays (inputs, then outputs, then internal ones) and statements of a kernel."""
    values = _arrays(kernel)
    position = {value: i for i, value in enumerate(values)}
    outputs = set(kernel.terminator.values)
    arrays = tuple(_array(value, outputs) for value in values)
    statements: list[KernelStatement] = []
    operations: list[str] = []
    for op in kernel.body.block.ops:
        if isinstance(op, BasicOp):
            results = [position[r] for r in op.results]
            dtypes = [arrays[r].dtype for r in results]
            operands = [position.get(v, -1 - i) for i, v in enumerate(op.operands)]
            made = statements_of(op.compute(), operands, results, len(operations), dtypes)
            statements += [replace(s, body=_with_literals(s.body, op)) for s in made]
            location = source_location(op)
            operations.append(f"{op.name} at {location}" if location else op.name)
        elif not isinstance(op, ms.ConstantOp | gk.YieldOp):
            raise InvalidStructure(f"gk.kernel: {op.name} is not a basic operation")
    return with_accumulators(KernelModel(arrays, tuple(statements), tuple(operations)))


def output_positions(kernel: gk.KernelOp) -> tuple[int, ...]:
    """The array number of each value that the kernel yields."""
    position = {value: i for i, value in enumerate(_arrays(kernel))}
    return tuple(position[value] for value in kernel.terminator.values)


def _arrays(kernel: gk.KernelOp) -> list[SSAValue]:
    computed = [r for op in kernel.body.block.ops if isinstance(op, BasicOp) for r in op.results]
    yielded = list(dict.fromkeys(v for v in kernel.terminator.values if v in computed))
    return [*kernel.body.block.args, *yielded, *(v for v in computed if v not in yielded)]


def _array(value: SSAValue, outputs: set[SSAValue]) -> Array:
    type_ = tensor_type(value)
    kind: ArrayKind = "output" if value in outputs else "internal"
    if not isinstance(value.owner, BasicOp):
        kind = "input"
    return Array(tuple(type_.get_shape()), _dtype(type_), kind)


def _dtype(type_: TensorType[Attribute]) -> str:
    name = dtype_name(type_.element_type)
    if name is None:
        raise InvalidStructure(f"gk.kernel: no computation on {type_.element_type}")
    return name


def _with_literals(scalar: Scalar, op: BasicOp) -> Scalar:
    """Reads of constants (negative operand numbers) as the literals that they are."""
    match scalar:
        case Read() if scalar.operand < 0:
            return _literal(op.operands[-1 - scalar.operand])
        case Read():
            return replace(scalar, indirect=tuple((d, _with_literals(i, op)) for d, i in scalar.indirect))
        case Apply():
            return Apply(scalar.op, tuple(_with_literals(a, op) for a in scalar.args))
        case Cast():
            return Cast(_with_literals(scalar.arg, op), scalar.dtype)
        case _:
            return scalar


def _literal(value: SSAValue) -> Constant:
    constant = value.owner
    if not isinstance(constant, ms.ConstantOp) or not isa(constant.value, DenseIntOrFPElementsAttr):
        raise InvalidStructure("gk.kernel: an operand is neither computed in the kernel nor an input nor a constant")
    data = constant.value.data.data
    values = constant.value.get_values()
    if not values or data != data[: len(data) // len(values)] * len(values):
        raise InvalidStructure("gk.kernel: a constant with different elements must be a parameter (outline-constants)")
    return Constant(_plain(values[0]), _dtype(tensor_type(value)))


def _plain(value: object) -> float | int:
    if isinstance(value, int | float):
        return value
    raise InvalidStructure(f"gk.kernel: no literal for {value}")
