"""The entry function read: which buffers exist, where they lie, which kernels are called on them in what order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr
from xdsl.utils.hints import isa

from msc.codegen.c.types import CArrayType, buffer_type, no_c_form
from msc.dialects.loop import BufferSliceOp
from msc.dialects.loop.attributes import LOOP_OFFSET
from msc.dialects.ms.attributes import MS_CODES, MS_DTYPE, MS_NAME, MS_ROLE, MS_SCALE, MS_ZERO
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.open_sizes import COMPACT, COUNTS, WHOLE, argument_sizes, valid_tensor
from msc.ir.donation import RESULT, STATE
from msc.ir.entry import entries, find_entry
from msc.ir.index_bounds import index_bounds
from msc.ir.storage_order import order_of
from msc.poly.affine import linear_form
from msc.poly.valid_extents import Size
from msc.runtime.program import Bound, MemoryStep, SizeSpec, TensorSpec, WeightSlot
from msc.support.diagnostics import Diagnostic, MscError

ROLES = ("input", STATE, "output", "size", "workspace", "weights")


@dataclass(frozen=True)
class MemoryPlace:
    """Memory: a tensor of the signature (`root` is its position), or bytes of the workspace or the weights.

    An entry of a buffer, at a place known at run time, lies somewhere `within` that; `entry` tells entries apart.
    """

    role: str
    root: int
    offset: int
    buffer: CArrayType
    within: MemoryPlace | None = None
    entry: int = 0

    @property
    def span(self) -> int:
        """The bytes from the offset on in which the place lies."""
        return self.buffer.bytes if self.within is None else self.within.span

    @property
    def whole(self) -> MemoryPlace:
        """The buffer of an entry; itself for all else."""
        return self if self.within is None else self.within.whole

    def overlaps(self, other: MemoryPlace) -> bool:
        """Whether the two share a byte."""
        if (self.role, self.root) != (other.role, other.root):
            return False
        return self.offset < other.offset + other.span and other.offset < self.offset + self.span


@dataclass(frozen=True)
class Call:
    """A kernel call or, with no `kernel`, a copy from the first place to the second; `sizes` are numbers of sizes."""

    kernel: str | None
    places: tuple[MemoryPlace, ...]
    sizes: tuple[int, ...] = ()


@dataclass
class EntryPlan:
    """What the entry function does."""

    inputs: list[TensorSpec] = field(default_factory=list[TensorSpec])
    outputs: list[TensorSpec] = field(default_factory=list[TensorSpec])
    sizes: list[SizeSpec] = field(default_factory=list[SizeSpec])
    size_numbers: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    workspace_bytes: int = 0
    weights_bytes: int = 0
    calls: list[Call] = field(default_factory=list[Call])
    slots: list[WeightSlot] = field(default_factory=list[WeightSlot])
    names: dict[MemoryPlace, str] = field(default_factory=dict[MemoryPlace, str])
    places: dict[SSAValue, MemoryPlace] = field(default_factory=dict[SSAValue, MemoryPlace])
    buffers: dict[int, tuple[str, MemoryPlace]] = field(default_factory=dict[int, "tuple[str, MemoryPlace]"])
    views: dict[int, int] = field(default_factory=dict[int, int])

    def aliased(self) -> dict[str, set[int]]:
        """For each kernel, the positions of its parameters that share memory with another one in some call."""
        found: dict[str, set[int]] = {}
        for call in self.calls:
            if call.kernel is not None:
                found.setdefault(call.kernel, set()).update(_overlapping(call.places))
        return found

    def given(self) -> dict[str, set[int]]:
        """For each kernel, the positions of its parameters that are tensors of the caller in some call."""
        found: dict[str, set[int]] = {}
        for call in self.calls:
            if call.kernel is not None:
                own = ("workspace", "weights")
                positions = {k for k, place in enumerate(call.places) if place.role not in own}
                found.setdefault(call.kernel, set()).update(positions)
        return found

    def steps(self) -> Iterator[MemoryStep]:
        """What of the workspace is live at each call: from the first call that takes a buffer to the last."""
        used = [[self.buffer_of(p.whole) for p in call.places if p.role == "workspace"] for call in self.calls]
        last = {buffer: number for number, buffers in enumerate(used) for buffer in buffers}
        live: dict[int, None] = {}
        for number, (call, buffers) in enumerate(zip(self.calls, used, strict=True)):
            live.update(dict.fromkeys(buffers))
            shown = {self.buffers[k][1].offset: self.buffers[k] for k in live}
            tensors = tuple((name, p.buffer.bytes) for name, p in shown.values())
            yield MemoryStep(call.kernel or "copy", tensors, _covered([p for _, p in shown.values()]))
            for buffer in set(buffers):
                if last[buffer] == number:
                    del live[buffer]

    def buffer_of(self, place: MemoryPlace) -> int:
        """The number of the buffer of which a place is a view: buffers come and go at the same offset."""
        return self.views.get(id(place), id(place))


def _covered(places: Sequence[MemoryPlace]) -> int:
    """The bytes that some places have together."""
    total = end = 0
    for place in sorted(places, key=lambda place: place.offset):
        last = place.offset + place.buffer.bytes
        total += max(0, last - max(end, place.offset))
        end = max(end, last)
    return total


def _overlapping(places: Sequence[MemoryPlace]) -> Iterator[int]:
    """Positions of places that share memory with another one."""
    for position, place in enumerate(places):
        if any(place.overlaps(other) for k, other in enumerate(places) if k != position):
            yield position


def read_plan(module: ModuleOp, main: func.FuncOp) -> EntryPlan:
    """The plan of an entry function. Raises MSC0905 when it holds anything but views and calls."""
    plan = EntryPlan(slots=list(_slots(module)))
    for argument, size in argument_sizes(main.args, main.arg_attrs).items():
        plan.size_numbers[argument] = len(plan.sizes)
        plan.sizes.append(SizeSpec(size.name, "", size.low, size.high))
    plan.places.update(_arguments(main, plan))
    constants: dict[SSAValue, int] = {}
    for op in main.body.walk():
        _read(op, plan, constants)
    for call in plan.calls:
        if call.kernel is None:
            _note_copied(call, plan)
    return plan


def _note_copied(call: Call, plan: EntryPlan) -> None:
    """What is copied is copied whole."""
    for place in call.places:
        if place.role in ("input", "output"):
            tensors = plan.inputs if place.role == "input" else plan.outputs
            tensors[place.root] = replace(tensors[place.root], whole=True)


def entry_functions(module: ModuleOp) -> list[func.FuncOp]:
    """The entry functions, @main or else the first in front. Raises MSC0605 for a module without."""
    first = find_entry(module)
    if first is None or len(first.body.blocks) != 1:
        raise MscError(Diagnostic("MSC0605", "the module has no function @main, where a model starts"))
    return [first, *(entry for entry in entries(module) if entry is not first)]


def _slots(module: ModuleOp) -> Iterator[WeightSlot]:
    for op in module.ops:
        offset = op.attributes.get(LOOP_OFFSET)
        if isinstance(op, ParameterOp) and isinstance(offset, IntegerAttr):
            yield WeightSlot(op.symbol, offset.value.data, _dtype(op.type.element_type), tuple(op.type.get_shape()))


def _dtype(type_: Attribute) -> str:
    name = str(type_)
    return name if not name.startswith("si") else name[1:]


def _arguments(main: func.FuncOp, plan: EntryPlan) -> Iterator[tuple[SSAValue, MemoryPlace]]:
    for argument, attributes in zip(main.body.block.args, _argument_attributes(main), strict=True):
        if argument not in plan.size_numbers:
            yield argument, _argument(argument, attributes, plan)


def _argument_attributes(main: func.FuncOp) -> list[DictionaryAttr]:
    if main.arg_attrs is None:
        return [DictionaryAttr({}) for _ in main.body.block.args]
    return list(main.arg_attrs)


def _counts(attributes: DictionaryAttr) -> tuple[str, ...]:
    """The names of the outputs that say how long the dimensions are."""
    given = attributes.data.get(COUNTS)
    names = given.data if isa(given, ArrayAttr[StringAttr]) else ()
    return tuple(name.data for name in names)


def _reals(attributes: DictionaryAttr) -> tuple[float, int] | None:
    """The scale and the zero point of integers that stand for reals."""
    scale, zero = attributes.data.get(MS_SCALE), attributes.data.get(MS_ZERO)
    if not isinstance(scale, FloatAttr) or not isinstance(zero, IntegerAttr):
        return None
    return scale.value.data, zero.value.data


def _argument(argument: BlockArgument, attributes: DictionaryAttr, plan: EntryPlan) -> MemoryPlace:
    role, buffer = _text(attributes, MS_ROLE) or "input", buffer_type(argument.type)
    match role:
        case "workspace":
            plan.workspace_bytes = buffer.bytes
        case "weights":
            plan.weights_bytes = buffer.bytes
        case "input" | "output" | "state":
            role = "output" if role == "output" else "input"
            tensors = plan.inputs if role == "input" else plan.outputs
            name = _text(attributes, MS_NAME) or argument.name_hint or f"{role}{len(tensors)}"
            dtype = _text(attributes, MS_DTYPE) or buffer.base
            bounds, codes = _bounds(attributes, buffer.shape, plan), _text(attributes, MS_CODES) or ""
            whole, result = WHOLE in attributes.data, _number(attributes, RESULT)
            order = order_of(attributes.data) or ()
            indices = index_bounds(attributes)
            compact, reals = COMPACT in attributes.data, _reals(attributes)
            own = (name, "", dtype, buffer.shape, bounds, whole, codes, result, order, indices, compact, reals)
            tensors.append(TensorSpec(*own, _counts(attributes)))
            return MemoryPlace(role, len(tensors) - 1, 0, buffer)
        case _:
            raise no_c_form(f"an argument of @main whose ms.role is not one of {', '.join(ROLES)}")
    return MemoryPlace(role, 0, 0, buffer)


def _bounds(attributes: DictionaryAttr, shape: Sequence[int], plan: EntryPlan) -> tuple[Bound | None, ...]:
    """The bounds of a tensor's dimensions over the sizes; nothing where all are constant."""
    if not plan.sizes:
        return ()
    sizes = [Size(s.name, s.low, s.high) for s in plan.sizes]
    valid = valid_tensor(attributes.data, shape, sizes)
    found = tuple(None if dim[0].bound is None else _bound(dim[0].bound, len(sizes)) for dim in valid)
    return found if any(found) else ()


def _bound(expr: AffineExpr, sizes: int) -> Bound:
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.FloorDiv:
        return replace(_bound(expr.lhs, sizes), divisor=expr.rhs.eval((), ()))
    form = linear_form(expr)
    if form is None:
        raise no_c_form(f"a dimension of {expr} elements")
    return Bound(tuple(form.coefficients.get(k, 0) for k in range(sizes)), form.constant)


def _text(attributes: DictionaryAttr, name: str) -> str | None:
    attribute = attributes.data.get(name)
    return attribute.data if isinstance(attribute, StringAttr) else None


def _number(attributes: DictionaryAttr, name: str) -> int | None:
    attribute = attributes.data.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


RENAMES = (memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp)
"""Operations whose result is their first operand with another shape."""


def _read(op: Operation, plan: EntryPlan, constants: dict[SSAValue, int]) -> None:
    """Note what an operation says of memory; scalars and control flow around calls say nothing."""
    places = plan.places
    match op:
        case arith.ConstantOp() if isinstance(op.value, IntegerAttr):
            constants[op.result] = op.value.value.data
        case memref.ViewOp():
            _view(op, plan, constants)
        case func.CallOp():
            buffers = tuple(places[a] for a in op.arguments if a in places)
            sizes = tuple(plan.size_numbers[a] for a in op.arguments if a in plan.size_numbers)
            plan.calls.append(Call(op.callee.root_reference.data, buffers, sizes))
        case memref.CopyOp():
            plan.calls.append(Call(None, (places[op.source], places[op.destination])))
        case BufferSliceOp():
            base = places[op.source]
            place = MemoryPlace(base.role, base.root, base.offset, buffer_type(op.result.type), base, len(places))
            places[op.result] = place
            plan.names[place] = op.result.name_hint or ""
        case memref.AllocOp() | memref.AllocaOp() | memref.GetGlobalOp():
            raise no_c_form(f"{op.name} in @main")
        case _ if isinstance(op, RENAMES):
            base = places[op.operands[0]]
            place = replace(base, buffer=buffer_type(op.results[0].type))
            places[op.results[0]] = place
            plan.views[id(place)] = plan.buffer_of(base)
            plan.names.setdefault(place, plan.names.get(base, ""))
        case _:
            return


def _view(op: memref.ViewOp, plan: EntryPlan, constants: dict[SSAValue, int]) -> None:
    base, shift = plan.places[op.source], constants.get(op.byte_shift)
    if shift is None or op.sizes:
        raise no_c_form("a memref.view whose offset is not constant")
    place = MemoryPlace(base.role, base.root, base.offset + shift, buffer_type(op.result.type))
    if place.offset + place.buffer.bytes > base.offset + base.buffer.bytes:
        raise no_c_form(f"a memref.view past the end of the {base.role}")
    plan.places[op.result] = place
    plan.buffers[id(place)] = (op.result.name_hint or f"at {place.offset}", place)
    plan.names.setdefault(place, op.result.name_hint or "")
