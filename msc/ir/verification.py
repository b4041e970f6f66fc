"""`verify_module`: every broken rule of a module at once, each with its place, and without the module printed into it.

xDSL's verifier stops at the first error, prints the whole module into it and does not check dominance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby, islice
from typing import cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, SymbolRefAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import traits_def
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from msc.ir.control_flow import control_flow_error
from msc.ir.errors import (
    CodedVerifyException,
    DtypeConflict,
    InvalidAttribute,
    InvalidStructure,
    ShapeConflict,
    code_of,
    help_of,
    place_of,
)
from msc.ir.locations import SourceText, source_location
from msc.ir.typed import memref_type
from msc.support.diagnostics import Diagnostic, Location, raise_any

__all__ = [
    "CodedVerifyException",
    "DtypeConflict",
    "InvalidAttribute",
    "InvalidStructure",
    "ShapeConflict",
    "module_diagnostics",
    "verify_module",
    "verify_operation",
]

_MAXIMUM_ELEMENTS = 1 << 40
"""A tensor beyond this fits no machine; the bound keeps all sizes in bytes far from overflowing 64 bits."""

_MAXIMUM_DIAGNOSTICS = 64
"""A systematic mistake in a large model repeats; the first ones tell."""


_CALL_WITHOUT_FUNCTION = replace(CallOp.get_irdl_definition(), traits=traits_def())
"""The definition of a call without its one trait, which looks for the function."""


def verify_module(module: ModuleOp, sources: Mapping[str, str] | None = None) -> None:
    """Raise one MscError with a diagnostic for every broken rule in `module`; `sources` maps file names to texts."""
    raise_any(module_diagnostics(module, sources))


def verify_operation(root: Operation, sources: Mapping[str, str] | None = None) -> None:
    """Raise one MscError with a diagnostic for every operation within `root`, or itself, that breaks its rules."""
    reporter = _Reporter(sources or {})
    broken = ((op, _check_own_rules(op)) for op in root.walk())
    found = (reporter.diagnostic(place_of(error, op), error) for op, error in broken if error is not None)
    raise_any(islice(found, _MAXIMUM_DIAGNOSTICS))


def module_diagnostics(module: ModuleOp, sources: Mapping[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """The broken rules of `module`, in textual order of the operations; dominance after all else."""
    reporter = _Reporter(sources or {})
    found: list[Diagnostic] = []
    for op, error in _violations(module):
        found.append(reporter.diagnostic(op, error))
        if len(found) == _MAXIMUM_DIAGNOSTICS:
            break
    return tuple(found)


def _violations(module: ModuleOp) -> Iterator[tuple[Operation, VerifyException]]:
    calls = _Calls(module)
    for op in module.walk():
        for check in (_check_structure, _check_sizes, control_flow_error, _check_indices, calls.check):
            error = check(op)
            if error is not None:
                yield place_of(error, op), error
                break
    for op, operands in groupby(dominance_violations(module), key=lambda violation: violation[0]):
        operand = next(operands)[1]
        yield op, _NotDominated(f"{_name(operand)} is used before it is defined, or outside its region")


class _NotDominated(CodedVerifyException):
    code = "MSC0204"


class _TooLarge(CodedVerifyException):
    code = "MSC0206"


def _check_own_rules(op: Operation) -> VerifyException | None:
    """The rules of the operation's definition: IRDL constraints, traits and its own `verify_`."""
    try:
        op.verify_()
    except VerifyException as error:
        return error
    return None


def _check_indices(op: Operation) -> VerifyException | None:
    """An index for each dimension: where xDSL's own rule raises no VerifyException."""
    if not isinstance(op, memref.LoadOp | memref.StoreOp):
        return None
    rank = len(memref_type(op.memref).get_shape())
    return None if len(op.indices) == rank else ShapeConflict(f"{len(op.indices)} indices of a buffer of rank {rank}")


class _Calls:
    """Checks calls, each function once for the same types, and finds it by its name.

    xDSL looks for it through the whole module. It is asked about all that is not as it should be.
    """

    def __init__(self, module: ModuleOp) -> None:
        self._valid: set[tuple[object, ...]] = set()
        self._module = module
        self._symbols: dict[Attribute, Operation] = {}
        for op in module.ops:
            name = op.properties.get("sym_name")
            if name is not None:
                self._symbols.setdefault(name, op)

    def check(self, op: Operation) -> VerifyException | None:
        """The rules of the operation's definition, calls or not."""
        if not isinstance(op, CallOp):
            return _check_own_rules(op)
        key = (*op.properties.items(), *op.attributes.items(), *op.operand_types, None, *op.result_types)
        if key in self._valid:
            return None
        error = _check_definition(op) if self._fits(op) else _check_own_rules(op)
        if error is None:
            self._valid.add(key)
        return error

    def _fits(self, op: CallOp) -> bool:
        """Whether a call in a function of the module is of another one, with values of its types."""
        outer, callee = op.parent_op(), op.properties.get("callee")
        while outer is not None and not isinstance(outer, FuncOp):
            outer = outer.parent_op()
        if outer is None or outer.parent_op() is not self._module or not isinstance(callee, SymbolRefAttr):
            return False
        function = None if callee.nested_references.data else self._symbols.get(callee.root_reference)
        if not isinstance(function, FuncOp):
            return False
        type_ = function.function_type
        return type_.inputs.data == tuple(op.operand_types) and type_.outputs.data == tuple(op.result_types)


def _check_definition(op: CallOp) -> VerifyException | None:
    """The rules of a call but for what it says of the function."""
    try:
        _CALL_WITHOUT_FUNCTION.verify(op)
    except VerifyException as error:
        return error
    return None


def _check_structure(op: Operation) -> VerifyException | None:
    return _check_successors(op) or next(filter(None, (_check_region(op, region) for region in op.regions)), None)


def _check_successors(op: Operation) -> VerifyException | None:
    if not op.successors:
        return None
    if op.parent is None or op.parent.last_op is not op:
        return InvalidStructure("an operation with successors must be the last of its block")
    if any(successor.parent is not op.parent.parent for successor in op.successors):
        return InvalidStructure("a successor must be a block of the same region")
    return None


def _check_region(op: Operation, region: Region) -> VerifyException | None:
    """Each block ends with a terminator, unless the operation says that its single block has none."""
    blocks = list(region.blocks)
    if len(blocks) == 1 and op.has_trait(NoTerminator):
        return None
    for block in blocks:
        last = block.last_op
        if last is None:
            return InvalidStructure("a block is empty; it must end with a terminator")
        if not last.has_trait(IsTerminator, value_if_unregistered=True):
            return InvalidStructure(f"a block ends with '{last.name}', which is not a terminator")
    return None


def _check_sizes(op: Operation) -> VerifyException | None:
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    for value in (*op.results, *arguments):
        if _elements(value.type) > _MAXIMUM_ELEMENTS:
            return _TooLarge(f"{value.type} has more than 2^40 elements")
    return None


def _elements(type: Attribute) -> int:
    if not isinstance(type, TensorType | MemRefType):
        return 1
    shape = cast(TensorType[Attribute] | MemRefType[Attribute], type).get_shape()
    return math.prod(1 if extent == DYNAMIC_INDEX else extent for extent in shape)


def _name(value: SSAValue) -> str:
    if value.name_hint is not None:
        return f"'%{value.name_hint}'"
    return "a block argument" if isinstance(value, BlockArgument) else f"a result of '{_owner_name(value)}'"


def _owner_name(value: SSAValue) -> str:
    return value.owner.name if isinstance(value.owner, Operation) else "a block"


_BASE_TYPE = re.compile(
    r"(operand|result) '(\w+)' at position \d+ does not verify:\s(.+) should be of base attribute (\w+)"
)
"""How xDSL says that a value is of another kind of type than an operation takes."""


class _Reporter:
    """Finds the text that an operation was read from."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = {name: SourceText(text, name) for name, text in sources.items()}

    def diagnostic(self, op: Operation, error: VerifyException) -> Diagnostic:
        location = source_location(op)
        place = location if location is None else location.written or location
        line = None if place is None else self._line(place)
        length = 1 if line is None or place is None else _name_length(line, place.column)
        text = _BASE_TYPE.sub(r"\1 '\2' is of type \3, but should be a \4", str(error).strip())
        message = text if text.startswith(op.name) else f"'{op.name}': {text}"
        return Diagnostic(code_of(error), message, location, line, length, help=help_of(error))

    def _line(self, location: Location) -> str | None:
        source = self._sources.get(location.file)
        return None if source is None else source.lines.line(location.line)


def _name_length(line: str, column: int) -> int:
    """The length of the operation's name that starts at a 1-based column."""
    rest = line[column - 1 :]
    stop = next((i for i, c in enumerate(rest) if not (c.isalnum() or c in '_."$')), len(rest))
    return max(1, stop)


# SSA dominance: every value is defined before its use, in the same region or an enclosing one.
#
# xDSL's verifier does not check this (xdslproject/xdsl#1033); passes that move operations break it silently.
def dominance_violations(root: Operation) -> Iterator[tuple[Operation, SSAValue]]:
    """Every (operation, operand) inside `root` whose operand does not dominate the operation, in textual order."""
    checker = _Checker(root)
    for op in root.walk():
        for operand in op.operands:
            if not checker.dominates(operand, op):
                yield op, operand


class _Checker:
    def __init__(self, root: Operation) -> None:
        self._order = {op: index for index, op in enumerate(root.walk())}
        self._regions: dict[Region, DominanceInfo] = {}

    def dominates(self, value: SSAValue, user: Operation) -> bool:
        """Whether `value` is defined where `user` may use it."""
        block = _defining_block(value)
        if block is None:
            return False
        ancestor = block.find_ancestor_op_in_block(user)
        if ancestor is None:
            return self._dominates_from_other_block(block, user)
        return isinstance(value, BlockArgument) or self._precedes(value, ancestor)

    def _precedes(self, value: SSAValue, ancestor: Operation) -> bool:
        owner = value.owner
        if not isinstance(owner, Operation) or owner is ancestor:
            return False
        return owner in self._order and self._order[owner] < self._order[ancestor]

    def _dominates_from_other_block(self, block: Block, user: Operation) -> bool:
        region = block.parent
        used_in = None if region is None else _block_in(region, user)
        if region is None or used_in is None:
            return False
        if region not in self._regions:
            self._regions[region] = DominanceInfo(region)
        return self._regions[region].strictly_dominates(block, used_in)


def _defining_block(value: SSAValue) -> Block | None:
    match value:
        case BlockArgument():
            return value.block
        case OpResult():
            return value.op.parent
        case _:
            return None


def _block_in(region: Region, op: Operation) -> Block | None:
    """The block of `region` that contains `op`, at any depth."""
    block = op.parent
    while block is not None and block.parent is not region:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block
