"""Loop-stage functions as Python source over NumPy arrays: fast enough to run whole models as a reference.

Every name in the source is a number of our own with a letter before it; nothing that a model says gets into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import func, memref, scf, vector
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from msc.dialects.arrays import Array
from msc.dialects.loop import AccessOp, ApplyOp, ForOp, LanesOp, LoadOp, PrefetchOp, StoreOp
from msc.dialects.open_sizes import argument_sizes
from msc.interp.loop_access import TranslatedAccess, affine_text, lane_numbers
from msc.interp.loop_operations import OPERATIONS
from msc.ir.errors import InvalidStructure
from msc.ir.locations import source_location
from msc.ir.typed import is_vector
from msc.poly.intervals import Interval, interval
from msc.support.diagnostics import Diagnostic, MscError

_OPERATORS = {
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.mulf": "*",
    "arith.divf": "/",
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
}
"""Inlined, because they are what loops spend their time on."""

_OPEN_LOOPS = 16
"""Python compiles at most 20 loops inside each other in one function; deeper ones go to a function of their own."""

Call: TypeAlias = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class FunctionScope:
    """What a function refers to by name: other functions and parameters."""

    call: Call
    parameter: Callable[[str], Array]


def translate(function: FuncOp, surroundings: FunctionScope) -> Call:
    """The function as a Python callable on arrays and scalars.

    Raises MSC0611 for an operation that the loop stage does not have.
    """
    translation = _Translation(function, surroundings)
    namespace = translation.namespace
    exec(compile(translation.source, "<loop stage>", "exec"), namespace)
    return cast(Call, namespace["f"])


class _Translation:
    def __init__(self, function: FuncOp, surroundings: FunctionScope) -> None:
        self.namespace: dict[str, Any] = {
            "call": surroundings.call,
            "parameter": surroundings.parameter,
            "full": np.full,
            "concatenate": np.concatenate,
            "outside": _outside,
        }
        self._names: dict[SSAValue, str] = {}
        self._ranges: dict[SSAValue, Interval] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._loops = 0
        for argument, size in argument_sizes(function.args, function.arg_attrs).items():
            self._ranges[argument] = (size.low, size.high)
        self._line(f"def f({', '.join(map(self._name, function.args))}):")
        self._block(function.body.block)
        self._line("return ()", 1)

    @property
    def source(self) -> str:
        return "\n".join(self._lines)

    # Names and lines.

    def _name(self, value: SSAValue) -> str:
        return self._names.setdefault(value, f"v{len(self._names)}")

    def _bind(self, value: Any) -> str:
        name = f"g{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def _line(self, text: str, deeper: int = 0) -> None:
        self._lines.append(" " * (self._depth + deeper) + text)

    def _block(self, block: Block) -> None:
        self._depth += 1
        before = len(self._lines)
        for op in block.ops:
            self._operation(op)
        if len(self._lines) == before:
            self._line("pass")
        self._depth -= 1

    def _assign(self, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        if targets:
            names = ", ".join(map(self._name, targets))
            self._line(f"{names}, = {', '.join(map(self._name, sources))},")

    # Operations.

    def _operation(self, op: Operation) -> None:
        operands = [self._name(v) for v in op.operands]
        match op:
            case ForOp():
                self._for(op)
            case LoadOp() | StoreOp():
                self._access(op)
            case memref.LoadOp() | memref.StoreOp():
                self._plain_access(op)
            case vector.LoadOp():
                self._vector_access(op, op.base, op.indices, op.result)
            case vector.StoreOp():
                self._vector_access(op, op.base, op.indices, op.vector)
            case memref.GetGlobalOp():
                symbol = self._bind(op.name_.string_value())
                self._line(f"{self._name(op.memref)} = parameter({symbol})")
            case ApplyOp():
                self._line(f"{self._name(op.result)} = {affine_text(op.map.data.results[0], operands)}")
                known = [self._ranges.get(v) for v in op.operands]
                self._ranges[op.result] = interval(op.map.data.results[0], known)
            case func.CallOp():
                self._call(op, operands)
            case func.ReturnOp():
                self._line(f"return ({''.join(f'{o}, ' for o in operands)})")
            case scf.IfOp() | scf.ForOp() | scf.WhileOp():
                self._structured(op)
            case scf.YieldOp() | scf.ConditionOp():
                """Read by the operation around them."""
            case PrefetchOp():
                """A hint, without a meaning."""
            case _:
                self._value(op, operands)

    def _value(self, op: Operation, operands: Sequence[str]) -> None:
        name = op.operation.data if isinstance(op, LanesOp) else op.name
        if name in _OPERATORS:
            self._line(f"{self._name(op.results[0])} = {operands[0]} {_OPERATORS[name]} {operands[1]}")
        elif name == "arith.constant":
            self._constant(op)
        elif name in OPERATIONS:
            function = self._bind(OPERATIONS[name])
            text = f"{function}({', '.join((self._bind(op), *operands))})"
            self._line(f"{self._name(op.results[0])} = {text}" if op.results else text)
        else:
            message = f"{name} cannot be executed at the loop stage"
            raise MscError(Diagnostic("MSC0611", message, source_location(op)))

    def _constant(self, op: Operation) -> None:
        value = OPERATIONS[op.name](op)
        self._names[op.results[0]] = str(value) if isinstance(value, int) and value >= 0 else self._bind(value)
        if isinstance(op.results[0].type, IndexType):
            self._ranges[op.results[0]] = (value, value)

    def _for(self, op: ForOp) -> None:
        if self._loops < _OPEN_LOOPS:
            self._loop(op)
            return
        name, self._loops = f"h{len(self._lines)}", 0
        self._line(f"def {name}():")
        self._depth += 1
        self._loop(op)
        self._depth -= 1
        self._line(f"{name}()")
        self._loops = _OPEN_LOOPS

    def _loop(self, op: ForOp) -> None:
        names = [self._name(v) for v in op.values]
        lower = self._bound("max", op.lower.data, names)
        upper = self._bound("min", op.upper.data, names)
        self._line(f"for {self._name(op.variable)} in range({lower}, {upper}, {op.step.value.data}):")
        self._ranges[op.variable] = self._loop_range(op)
        self._loops += 1
        self._block(op.body.block)
        self._loops -= 1

    def _bound(self, word: str, bound: AffineMap, names: Sequence[str]) -> str:
        texts = [affine_text(e, names) for e in bound.results]
        return texts[0] if len(texts) == 1 else f"{word}({', '.join(texts)})"

    def _loop_range(self, op: ForOp) -> Interval:
        constant = op.constant_range
        if constant is not None:
            return (constant[0], constant[-1]) if constant else (0, 0)
        known = [self._ranges.get(v) for v in op.values]
        lowers = [i[0] for e in op.lower.data.results if (i := interval(e, known)) is not None]
        uppers = [i[1] for e in op.upper.data.results if (i := interval(e, known)) is not None]
        return (max(lowers), max(max(lowers), min(uppers) - 1)) if lowers and uppers else None

    def _access(self, op: AccessOp) -> None:
        value = op.results[0] if isinstance(op, LoadOp) else op.operands[0]
        lanes, touched = _lanes(value), op.touched_lanes
        steps = op.lane_steps if lanes else ()
        access = TranslatedAccess.of(op.buffer, op.map, op.indices, self._names, self._ranges, touched, steps)
        buffer = self._check(op, access, op.buffer)
        index = access.vector_index(self._bind(lane_numbers(touched))) if lanes else access.scalar_index()
        if isinstance(op, StoreOp):
            stored = "" if not lanes else "[-1]" if access.uniform else f"[:{touched}]"
            self._line(f"{buffer}[{index}] = {self._name(value)}{stored}")
        else:
            self._line(f"{self._name(value)} = {_loaded(f'{buffer}[{index}]', access, lanes)}")

    def _plain_access(self, op: memref.LoadOp | memref.StoreOp) -> None:
        access = TranslatedAccess.of(
            op.memref, AffineMap.identity(len(op.indices)), op.indices, self._names, self._ranges
        )
        buffer = self._check(op, access, op.memref)
        element = f"{buffer}[{access.scalar_index()}]"
        if isinstance(op, memref.StoreOp):
            self._line(f"{element} = {self._name(op.value)}")
        else:
            self._line(f"{self._name(op.res)} = {element}")

    def _vector_access(
        self, op: vector.LoadOp | vector.StoreOp, buffer: SSAValue, indices: Sequence[SSAValue], value: SSAValue
    ) -> None:
        steps = (*[0] * (len(indices) - 1), 1)
        map_ = AffineMap.identity(len(indices))
        access = TranslatedAccess.of(buffer, map_, indices, self._names, self._ranges, _lanes(value), steps)
        element = f"{self._check(op, access, buffer)}[{access.vector_index('')}]"
        if isinstance(op, vector.StoreOp):
            self._line(f"{element} = {self._name(value)}")
        else:
            self._line(f"{self._name(value)} = {element}.copy()")

    def _check(self, op: Operation, access: TranslatedAccess, buffer: SSAValue) -> str:
        name = self._name(buffer)
        conditions = [c.replace("%s", name) for c in access.checks()]
        if conditions:
            self._line(f"if not ({' and '.join(conditions)}): outside({self._bind(op)}, ({access.scalar_index()},))")
        return name

    def _call(self, op: func.CallOp, operands: Sequence[str]) -> None:
        callee = self._bind(op.callee.string_value())
        text = f"call({', '.join((callee, *operands))})"
        results = "".join(f"{self._name(r)}, " for r in op.results)
        self._line(f"{results}= {text}" if results else text)

    # Upstream control flow: results and carried values are assigned where the regions end.

    def _structured(self, op: scf.IfOp | scf.ForOp | scf.WhileOp) -> None:
        match op:
            case scf.IfOp():
                self._line(f"if {self._name(op.cond)}:")
                self._region(op.true_region.block, op.results)
                self._line("else:")
                self._region(op.false_region.block if op.false_region.blocks else Block(), op.results)
            case scf.ForOp():
                self._scf_for(op)
            case scf.WhileOp():
                self._scf_while(op)

    def _region(self, block: Block, targets: Sequence[SSAValue]) -> None:
        """A block, and what its terminator gives into `targets`."""
        self._block(block)
        self._depth += 1
        self._assign(targets, _terminator(block).operands if targets else ())
        self._depth -= 1

    def _scf_for(self, op: scf.ForOp) -> None:
        variable, *carried = op.body.block.args
        self._assign(op.results, op.iter_args)
        bounds = ", ".join(map(self._name, (op.lb, op.ub, op.step)))
        self._line(f"for {self._name(variable)} in range({bounds}):")
        self._depth += 1
        self._assign(carried, op.results)
        self._depth -= 1
        self._region(op.body.block, op.results)

    def _scf_while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        self._assign(before.args, op.arguments)
        self._line("while True:")
        self._block(before)
        given = _terminator(before).operands[1:]
        self._depth += 1
        self._assign(op.results, given)
        self._line(f"if not {self._name(_terminator(before).operands[0])}: break")
        self._assign(after.args, given)
        self._depth -= 1
        self._region(after, before.args)


def _terminator(block: Block) -> Operation:
    if block.last_op is None:
        raise InvalidStructure("a block of structured control flow ends with a terminator")
    return block.last_op


def _lanes(value: SSAValue) -> int:
    """The lanes of a vector value; 0 for a scalar."""
    return value.type.get_shape()[0] if is_vector(value.type) else 0


def _loaded(element: str, access: TranslatedAccess, lanes: int) -> str:
    """A loaded value; lanes are copied, as later stores must not change them, and those not touched are zeros."""
    if not lanes:
        return element
    if access.lanes < lanes:
        return f"concatenate(({element}, full({lanes - access.lanes}, 0, {element}.dtype)))"
    return f"full({lanes}, {element})" if access.uniform else f"{element}.copy()"


def _outside(op: Operation, index: tuple[int, ...]) -> None:
    buffer = next(v.type for v in op.operands if hasattr(v.type, "memory_space"))
    message = f"{op.name}: index [{', '.join(map(str, index))}] is outside {buffer}"
    raise MscError(Diagnostic("MSC0610", message, source_location(op)))
