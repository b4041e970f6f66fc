"""Checks of `verify-loop-stage` on entry functions beyond operations: arguments, views, calls, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, IntegerType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.hints import isa

from msc.analysis.bytes import byte_size
from msc.dialects.element_types import BYTES, ELEMENT_TYPES, dtype_name
from msc.dialects.loop.attributes import LOOP_OFFSET
from msc.dialects.ms.attributes import MS_DTYPE, MS_ROLE
from msc.dialects.ms.structure import ParameterOp
from msc.dialects.open_sizes import argument_sizes
from msc.ir.donation import STATE
from msc.ir.typed import memref_type, static_shape
from msc.lowering.cpu.buffer_types import storage_type
from msc.lowering.cpu.verification.loop_stage_types import is_buffer

Fault = tuple[Operation, str]
"""An operation, and what is wrong with it."""

ROLES = {"input": 0, STATE: 0, "output": 1, "size": 2, "workspace": 3, "weights": 4}
"""The roles of arguments, by where they stand."""
_SPACES = ("workspace", "weights")


def argument_faults(function: func.FuncOp) -> Iterator[Fault]:
    """Arguments in order, each of the type that its role asks for; one without a role is an input."""
    sizes = argument_sizes(function.args, function.arg_attrs)
    roles = [_role(attributes) for attributes in _attributes(function)]
    places = [ROLES[role] for role in roles if role in ROLES]
    single = all(roles.count(role) <= 1 for role in _SPACES)
    if len(places) != len(roles) or places != sorted(places) or not single:
        message = "the arguments' ms.role are not inputs, outputs, sizes, a workspace and the weights, in this order"
        yield function, message
        return
    for argument, attributes, role in zip(function.args, _attributes(function), roles, strict=True):
        if role != "size" and not is_buffer(argument.type):
            continue
        if (role == "size") != (argument in sizes):
            yield function, f"argument {argument.index} is a size if, and only if, it is an index with a range"
        elif role in _SPACES and not _is_bytes(argument.type):
            yield function, f"the {role} is not one row of i8 but {argument.type}"
        elif role in ("input", STATE, "output"):
            yield from _dtype_faults(function, argument, attributes)


def _attributes(function: func.FuncOp) -> list[DictionaryAttr]:
    return list(function.arg_attrs) if function.arg_attrs else [DictionaryAttr({})] * len(function.args)


def _role(attributes: DictionaryAttr) -> str:
    role = attributes.data.get(MS_ROLE, StringAttr("input"))
    return role.data if isinstance(role, StringAttr) else ""


def _is_bytes(type_: Attribute) -> bool:
    return memref_type(type_).element_type == IntegerType(8) and len(static_shape(type_)) == 1


def _dtype_faults(function: func.FuncOp, argument: SSAValue, attributes: DictionaryAttr) -> Iterator[Fault]:
    """What the caller gives has elements of `ms.dtype`, if that is there, or of the buffer."""
    given = attributes.data.get(MS_DTYPE)
    if given is None:
        return
    element = memref_type(argument).element_type
    known = ELEMENT_TYPES.get(given.data) if isinstance(given, StringAttr) else None
    if known is None or storage_type(known) != element:
        yield function, f"ms.dtype = {given} of a {argument.type} is not a name of its elements"


def operation_faults(
    op: Operation, sizes: Mapping[str, Mapping[int, tuple[int, int]]], own: EntryArguments
) -> Iterator[Fault]:
    """Views that show other bytes than there are, and sizes of calls that are not the callee's.

    `sizes` are the ranges that each kernel asks of its arguments, by position; `own` the entry function's arguments.
    """
    match op:
        case memref.ViewOp():
            if op.source not in own.spaces:
                yield op, "a view shows bytes of the workspace or of the weights"
        case memref.ReinterpretCastOp():
            if not _is_another_shape(op):
                yield op, f"{op.result.type} is not another shape of all elements of {op.source.type}"
        case func.CallOp():
            for position, asked in sizes.get(op.callee.string_value(), {}).items():
                given = own.ranges.get(op.arguments[position])
                if given is None or given[0] < asked[0] or given[1] > asked[1]:
                    message = f"argument {position} is no size of @main, or not always from {asked[0]} to {asked[1]}"
                    yield op, message
        case _:
            return


class EntryArguments:
    """The arguments of the entry function that are sizes, with their ranges, and those that are spaces of bytes."""

    def __init__(self, function: func.FuncOp) -> None:
        found = argument_sizes(function.args, function.arg_attrs)
        self.ranges: Mapping[SSAValue, tuple[int, int]] = {a: (s.low, s.high) for a, s in found.items()}
        pairs = zip(function.args, _attributes(function), strict=True)
        self.spaces = frozenset(argument for argument, attributes in pairs if _role(attributes) in _SPACES)


def asked_sizes(function: func.FuncOp) -> Mapping[int, tuple[int, int]]:
    """The ranges of a kernel's arguments that are sizes, by position."""
    sizes = argument_sizes(function.args, function.arg_attrs)
    return {k: (sizes[a].low, sizes[a].high) for k, a in enumerate(function.args) if a in sizes}


def _is_another_shape(op: memref.ReinterpretCastOp) -> bool:
    if not is_buffer(op.source.type) or not is_buffer(op.result.type):
        return False
    source, result = memref_type(op.source), memref_type(op.result)
    shape = static_shape(op.result)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    said = [list(a.get_values()) for a in (op.static_offsets, op.static_sizes, op.static_strides)]
    same = source.element_type == result.element_type and prod(static_shape(op.source)) == prod(shape)
    return same and said == [[0], list(shape), strides] and len(op.operands) == 1


def parameter_faults(module: ModuleOp, weights: int) -> Iterator[Fault]:
    """Parameters whose `loop.offset` leaves the weights of a number of bytes, or meets another's."""
    taken: list[tuple[int, int, str]] = []
    for op in module.ops:
        offset = op.attributes.get(LOOP_OFFSET)
        if not isinstance(op, ParameterOp) or offset is None:
            continue
        bytes_ = BYTES[dtype_name(op.type.element_type) or ""] * prod(op.type.get_shape())
        if not isa(offset, IntegerAttr) or offset.value.data < 0 or offset.value.data + bytes_ > weights:
            yield op, f"loop.offset = {offset} of @{op.symbol} leaves the weights of {weights} bytes"
        elif bytes_:
            taken.append((offset.value.data, offset.value.data + bytes_, op.symbol))
    for (_, end, first), (start, _, second) in zip(sorted(taken), sorted(taken)[1:], strict=False):
        if start < end:
            yield module, f"the parameters @{first} and @{second} overlap in the weights"


def weights_bytes(function: func.FuncOp) -> int:
    """The size of the weights that the entry function is given."""
    pairs = zip(function.args, _attributes(function), strict=True)
    spaces = (argument for argument, attributes in pairs if _role(attributes) == "weights")
    return sum(byte_size(argument) for argument in spaces if is_buffer(argument.type))
