"""A `gk.kernel` as the polyhedral model sees it.

Splat constants become literals; all else the compute definitions say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.hints import isa

from msc.analysis.layout_views import LayoutViews
from msc.analysis.per_kernel import per_kernel
from msc.dialects import gk, ms
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.padding import PadOp
from msc.dialects.open_sizes import constant_size, said_bounds, valid_inputs
from msc.ir.errors import InvalidStructure
from msc.ir.locations import location_of
from msc.ir.typed import tensor_type
from msc.poly.axis_order import with_axes_in_order
from msc.poly.collapsing import collapsed
from msc.poly.dependences import Dependences, dependences
from msc.poly.digits import with_dimensions_as_digits
from msc.poly.model import (
    Array,
    ArrayKind,
    KernelModel,
    KernelStatement,
    Materialized,
    statements_of,
    with_accumulators,
)
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar, with_moved_reads
from msc.poly.valid_extents import NotABox, over_symbols
from msc.poly.valid_statements import bounded


@per_kernel
def kernel_model(kernel: gk.KernelOp) -> KernelModel:
    """The model of a kernel: internal arrays store their axes in the order of inputs and outputs (`axis_order`).

    Raises InvalidStructure as `logical_model`.
    """
    return with_dimensions_as_digits(with_axes_in_order(logical_model(kernel)))


@per_kernel
def logical_model(kernel: gk.KernelOp) -> KernelModel:
    """The model with internal arrays as their tensors, with bounds on statements whose inputs may be smaller.

    Dimensions that are run through together are one (`collapsing`), so that arrays may have fewer than their tensors.
    Raises InvalidStructure where that leaves no loops.
    """
    sizes, shapes = valid_inputs(kernel)
    try:
        model = bounded(capacity_model(kernel), dict(enumerate(shapes)), sizes)
    except NotABox as problem:
        raise InvalidStructure(f"gk.kernel: {problem}") from problem
    return collapsed(model)


@per_kernel
def kernel_dependences(kernel: gk.KernelOp) -> Dependences:
    """What a schedule of the kernel must respect."""
    return dependences(kernel_model(kernel))


@per_kernel
def capacity_model(kernel: gk.KernelOp) -> KernelModel:
    """The arrays (inputs, then outputs, then internal ones) and statements of a kernel.

    What only says how inputs and outputs lie in memory is no statement (`layout_views`); of a padding the border is.
    Nor is what runs over an empty box: a kernel of empty tensors has none.
    """
    views = LayoutViews.of(kernel)
    values = _arrays(kernel, views)
    position = {value: i for i, value in enumerate(values)}
    arrays = tuple(_array(value, set(kernel.terminator.values)) for value in values)
    _check_operations(kernel, views)
    statements: list[KernelStatement] = []
    operations = _statement_operations(kernel, views)
    for number, op in enumerate(operations):
        if isinstance(op, PadOp) and op in views.borders:
            stored, place = views.borders[op]
            statements += _border(op, position[stored], place, number)
        else:
            statements += _statements(op, position, views, number, arrays)
    running, between = tuple(s for s in statements if s.points), tuple(_materialized(kernel, views, position))
    return with_accumulators(KernelModel(arrays, running, tuple(map(origin, operations)), materialized=between))


def _check_operations(kernel: gk.KernelOp, views: LayoutViews) -> None:
    for op in kernel.body.block.ops:
        known = isinstance(op, BasicOp | ms.ConstantOp | gk.KernelYieldOp | gk.MaterializeOp)
        if not known and op not in views.operations:
            raise InvalidStructure(f"gk.kernel: {op.name} is not a basic operation")


def _materialized(kernel: gk.KernelOp, views: LayoutViews, position: Mapping[SSAValue, int]) -> Iterator[Materialized]:
    """The arrays between members, each with the first operation of the member that reads it."""
    reader = 0
    for op, member in zip(kernel.materialized, _members(kernel), strict=False):
        if op.value not in position:
            raise InvalidStructure("gk.materialize: its operand is computed by no basic operation of the kernel")
        reader += len(_computing(member, views))
        yield Materialized(position[op.value], op.axes, reader)


def _members(kernel: gk.KernelOp) -> list[list[Operation]]:
    """The operations of a kernel, member by member."""
    members: list[list[Operation]] = [[]]
    for op in kernel.body.block.ops:
        members[-1].append(op)
        if isinstance(op, gk.MaterializeOp):
            members.append([])
    return members


def _computing(member: Sequence[Operation], views: LayoutViews) -> list[BasicOp]:
    """The operations of a member that have statements: borders are filled first."""
    borders = [op for op in views.borders if op in member]
    return [*borders, *(op for op in member if isinstance(op, BasicOp) and op not in views.operations)]


def origin(op: Operation) -> str:
    """The operation with its place; of the file only the name, as generated code must not depend on where it lies."""
    place = location_of(op.location)
    return op.name if place is None else f"{op.name} at {PurePath(place.file).name}:{place.line}:{place.column}"


def statement_operations(kernel: gk.KernelOp) -> list[BasicOp]:
    """The operations that have statements, in the order in which the model numbers them."""
    return _statement_operations(kernel, LayoutViews.of(kernel))


def _statement_operations(kernel: gk.KernelOp, views: LayoutViews) -> list[BasicOp]:
    return [op for member in _members(kernel) for op in _computing(member, views)]


def _border(pad: PadOp, target: int, place: AffineMap, number: int) -> list[KernelStatement]:
    return [
        KernelStatement(s.extents, s.names, target, place.compose(s.write), s.body, None, number) for s in pad.border()
    ]


def _statements(
    op: BasicOp, position: dict[SSAValue, int], views: LayoutViews, number: int, arrays: tuple[Array, ...]
) -> list[KernelStatement]:
    results = [position[views.stored(r)] for r in op.results]
    operands = [position.get(views.stored(v), -1 - i) for i, v in enumerate(op.operands)]
    moved = {i: views.index_map(v) for i, v in enumerate(op.operands)}
    compute = [replace(s, body=with_moved_reads(s.body, moved)) for s in op.compute()]
    made = statements_of(compute, operands, results, number, [arrays[r].dtype for r in results])
    write_maps = {position[views.stored(r)]: views.index_map(r) for r in op.results}
    said = said_bounds(op)
    return [_with_layout(replace(s, body=_with_literals(s.body, op), bounds=said), write_maps) for s in made]


def _with_layout(statement: KernelStatement, writes: Mapping[int, AffineMap | None]) -> KernelStatement:
    moved = writes.get(statement.target)
    return statement if moved is None else replace(statement, write=moved.compose(statement.write))


@per_kernel
def output_positions(kernel: gk.KernelOp) -> tuple[int, ...]:
    """The array number of each value that the kernel yields."""
    position = {value: i for i, value in enumerate(_arrays(kernel, LayoutViews.of(kernel)))}
    return tuple(position[value] for value in kernel.terminator.values)


def _arrays(kernel: gk.KernelOp, views: LayoutViews) -> list[SSAValue]:
    basic = [op for op in kernel.body.block.ops if isinstance(op, BasicOp)]
    computed = dict.fromkeys(views.stored(r) for op in basic if op not in views.operations for r in op.results)
    yielded = list(dict.fromkeys(v for v in kernel.terminator.values if v in computed))
    return [*kernel.body.block.args, *yielded, *(v for v in computed if v not in yielded)]


def _array(value: SSAValue, outputs: set[SSAValue]) -> Array:
    type_ = tensor_type(value)
    kind: ArrayKind = "output" if value in outputs else "internal"
    if isinstance(value, BlockArgument):
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
            return replace(scalar, arg=_with_literals(scalar.arg, op))
        case _:
            return scalar


def _literal(value: SSAValue) -> Scalar:
    constant = value.owner
    size = constant_size(constant) if isinstance(constant, ms.ConstantOp) else None
    if size is not None:
        return Cast(Index(over_symbols(size)), _dtype(tensor_type(value)))
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
