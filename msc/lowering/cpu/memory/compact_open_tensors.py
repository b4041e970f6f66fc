"""Pass `compact-open-tensors`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, BlockArgument, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass

from msc.analysis.properties import PLACED
from msc.dialects.loop import CallRowsOp
from msc.dialects.ms.attributes import MS_ROLE
from msc.dialects.open_sizes import COMPACT, argument_sizes, compact_extents, valid_tensor
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.typed import static_shape
from msc.lowering.cpu.failure import refuse
from msc.lowering.cpu.verification.valid_limits import compact_limit
from msc.lowering.cpu.verification.verify_bounds import stays_inside
from msc.poly.valid_extents import NotABox, ValidShape, is_whole, reshaped

_RENAMES = (memref.ReinterpretCastOp, memref.CastOp, memref.ExpandShapeOp, memref.CollapseShapeOp)
_Layout = Mapping[func.FuncOp, Mapping[int, AffineMap]]
"""Of kernels, by number of the parameter: the extents of its dimensions over the kernel's sizes."""


@dataclass(frozen=True)
class CompactOpenTensors(ModulePass):
    """Let inputs and outputs of open sizes lie like any array: rows as far apart as they are long in the call.

    Takes: an entry function whose buffers have places, and kernels with buffers of the largest sizes. Gives:
    `ms.compact` on the arguments of the entry function of which kernels are proved to touch nothing but what is valid,
    and on the parameters that take them, with their extents. Elsewhere rows stay as far apart as the longest is long.
    """

    name = "compact-open-tensors"
    contract = Contract(requires=(PLACED,), runs_after={"plan-memory": "buffers may share the memory of results"})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_of(op)
        if len(found := entries(op)) == 1 and argument_sizes(found[0].args, found[0].arg_attrs):
            _Compacting(found[0], functions).run()


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions of a module by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}


def check_compact(entry: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Raise MSC0404 unless what is marked is marked in the entry function and in all kernels that take it."""
    compacting, given = _Compacting(entry, functions), list(entry.arg_attrs or ())
    taken: dict[SSAValue, _Layout] = {}
    for argument, attributes in zip(entry.args, given, strict=False):
        if COMPACT in attributes.data:
            layout = compacting.layout(argument)
            if layout is None:
                raise refuse(
                    "verify-memory-plan",
                    entry,
                    f"argument {argument.index} cannot be {COMPACT}: not only kernels take it",
                )
            taken[argument] = layout
    for call in compacting.calls:
        callee = functions.get(call.callee.string_value())
        said = dict(compact_extents(callee.arg_attrs)) if callee is not None else {}
        for number, operand in enumerate(call.arguments):
            expected = taken.get(_root(operand), {}).get(callee, {}).get(number) if callee is not None else None
            if said.get(number) != expected:
                raise refuse(
                    "verify-memory-plan",
                    call,
                    f"operand {number} and the parameter that takes it do not lie in memory alike",
                )


class _Compacting:
    """The arguments of one entry function."""

    def __init__(self, entry: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> None:
        self._entry, self._functions = entry, functions
        self._sizes = argument_sizes(entry.args, entry.arg_attrs)
        self.calls = [op for op in entry.walk() if isinstance(op, func.CallOp)]

    def run(self) -> None:
        taken: dict[SSAValue, _Layout] = {}
        for argument in self._entry.args:
            if (layout := self.layout(argument)) is not None:
                taken[argument] = layout
        while (refused := [a for a, layout in taken.items() if not self._agrees(layout, taken)]) or (
            refused := [a for a, layout in taken.items() if not _is_proved(layout)]
        ):
            for argument in refused:
                del taken[argument]
        for argument, layout in taken.items():
            _mark(self._entry, self._entry.args.index(argument), UnitAttr())
            for function, parameters in layout.items():
                for number, extents in parameters.items():
                    _mark(function, number, AffineMapAttr(extents))

    def layout(self, argument: BlockArgument) -> dict[func.FuncOp, dict[int, AffineMap]] | None:
        """Where an argument goes; None if it has no open size, or something else than kernels takes it."""
        given = self._entry.arg_attrs
        attributes = DictionaryAttr({}).data if given is None else given.data[argument.index].data
        role = attributes.get(MS_ROLE)
        if argument in self._sizes or role not in (None, *map(StringAttr, ("input", "output"))):
            return None
        valid = valid_tensor(attributes, static_shape(argument), list(self._sizes.values()))
        if all(map(is_whole, valid[1:])):
            return None
        found = defaultdict[func.FuncOp, dict[int, AffineMap]](dict)
        for call, value in self._uses(argument):
            callee = self._functions.get(call.callee.string_value()) if isinstance(call, func.CallOp) else None
            if callee is None or not isinstance(call, func.CallOp):
                return None
            for number in (k for k, operand in enumerate(call.arguments) if operand is value):
                extents = self._extents(call, callee, number, valid)
                if extents is None or found[callee].setdefault(number, extents) != extents:
                    return None
        return dict(found)

    def _uses(self, value: SSAValue) -> Iterable[tuple[object, SSAValue]]:
        for use in value.uses:
            if isinstance(use.operation, _RENAMES):
                yield from self._uses(use.operation.results[0])
            else:
                yield use.operation, value

    def _extents(self, call: func.CallOp, callee: func.FuncOp, number: int, valid: ValidShape) -> AffineMap | None:
        """The extents of a parameter over the sizes that its kernel takes; None where they are none of these."""
        parameter = callee.args[number]
        try:
            dims = reshaped(valid, static_shape(parameter))
        except NotABox:
            return None
        own = list(argument_sizes(callee.args, callee.arg_attrs))
        entry_sizes = list(self._sizes)
        places = {
            entry_sizes.index(call.arguments[a.index]): k for k, a in enumerate(own) if isinstance(a, BlockArgument)
        }
        if any(len(dim) > 1 for dim in dims):
            return None
        bounds = [AffineExpr.constant(dim[0].capacity) if dim[0].bound is None else dim[0].bound for dim in dims]
        if not {d for bound in bounds for d in bound.used_dims()} <= set(places):
            return None
        renamed = [AffineExpr.dimension(places.get(d, 0)) for d in range(len(entry_sizes))]
        return AffineMap(len(own), 0, tuple(bound.replace_dims_and_symbols(renamed, []) for bound in bounds))

    def _agrees(self, layout: _Layout, taken: Mapping[SSAValue, _Layout]) -> bool:
        """Whether all that calls give to the same parameters lies so."""
        return all(
            (other := taken.get(root)) is not None and other.get(callee, {}).get(number) == extents
            for callee, parameters in layout.items()
            for number, extents in parameters.items()
            for call in self.calls
            if call.callee.string_value() == callee.sym_name.data
            for root in [_root(call.arguments[number])]
        )


def _root(value: SSAValue) -> SSAValue:
    """The value whose memory another one shows."""
    while isinstance(value.owner, _RENAMES):
        value = value.owner.operands[0]
    return value


def _is_proved(layout: _Layout) -> bool:
    """Whether kernels touch nothing but what is valid, and element by element."""
    for function, parameters in layout.items():
        for number, extents in parameters.items():
            parameter = function.args[number]
            if any(isinstance(use.operation, CallRowsOp) for use in parameter.uses):
                return False
            if not stays_inside(function, compact_limit(function, number, extents)):
                return False
    return True


def _mark(function: func.FuncOp, number: int, attribute: Attribute) -> None:
    given = list(function.arg_attrs or [DictionaryAttr({})] * len(function.args))
    given[number] = DictionaryAttr({**given[number].data, COMPACT: attribute})
    function.arg_attrs = ArrayAttr(given)
