"""Pass `propagate-layouts`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.bytes import bytes_of
from msc.analysis.properties import SHAPES_KNOWN
from msc.dialects import ms
from msc.dialects.ms.attributes import MS_LAYOUTS, MS_SHARD
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.pipeline import follow
from msc.graph.emitter import CompositeEmitter
from msc.graph.expand.expanders import expander
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.locations import set_location, source_location
from msc.ir.typed import is_tensor, shape
from msc.parallel.layouts import Layout, Reduction
from msc.parallel.marks import (
    argument_layouts,
    layouts_text,
    mark_of,
    mark_text,
    mesh_of,
    parameter_layouts,
    result_layouts,
)
from msc.parallel.mesh import Mesh
from msc.parallel.redistribution import redistribute
from msc.parallel.rules import Rule, rule_of
from msc.parallel.usual_marks import has_marks, mark_as_usual
from msc.support.diagnostics import Diagnostic, MscError

Assignment = Mapping[int, tuple[str, ...]]
"""The axes that cut each factor of an operation."""


@dataclass(frozen=True)
class PropagateLayouts(ModulePass):
    """Give every operation the layouts of its operands and results, from those that some have.

    Takes: a graph of known sizes with a mesh (`ms.mesh`), where arguments and parameters may have a layout
    (`ms.sharding`) and operations a mark (`ms.shard`). Gives: the same graph, each operation with `ms.layouts`. A mark
    first reaches the arguments and parameters that it is made of. Then, in order, an operation is cut as those of its
    operands are that cost the fewest bytes to bring there, partial results included; of equal ones the most parts. A
    composite operation that is not cut as its operands are becomes what it is made of. What no rule knows is computed
    whole, on every rank. Where nothing is marked, the usual marks are made. Without a mesh nothing changes.
    Raises MSC1100, MSC1101, and MSC1106 for a mark that the operation does not admit.
    """

    name = "propagate-layouts"
    contract = Contract(requires=(SHAPES_KNOWN,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mesh = mesh_of(op)
        if mesh is None:
            return
        parameters = parameter_layouts(op, mesh)
        for function in entries(op):
            if not parameters and not has_marks(function):
                mark_as_usual(function, mesh)
            _Propagation(mesh, function, parameters).run()


def wanted_layouts(function: FuncOp, mesh: Mesh) -> Mapping[SSAValue, Layout]:
    """The layouts that marks want of arguments and parameters, and of values that are made of those alone."""
    propagation = _Propagation(mesh, function, {})
    propagation.want()
    return propagation.wanted


@dataclass
class _Propagation:
    mesh: Mesh
    function: FuncOp
    parameters: dict[str, Layout]
    layouts: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    wanted: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])

    def run(self) -> None:
        block = self.function.body.block
        self.want()
        for argument, layout in zip(block.args, argument_layouts(self.function, self.mesh, self.wanted), strict=True):
            if layout is not None:
                self.layouts[argument] = layout
        op = block.first_op
        while op is not None:
            op = self._operation(op)

    # --- backwards: what marks want of arguments and parameters ---------------------------------------------------

    def want(self) -> None:
        """Find what marks want."""
        for op in reversed(list(self.function.body.block.ops)):
            rule = rule_of(op) if op.results and not isinstance(op, FuncOp) else None
            if rule is None:
                continue
            for operand, mark in zip(op.operands, self._mark(op), strict=False):
                if mark is not None:
                    self.wanted.setdefault(operand, mark)
            result = self.wanted.get(op.results[0])
            tensors = [v for v in op.operands if is_tensor(v.type)]
            if result is not None and len(tensors) == 1 and len(op.operands) == 1:
                assignment = self._assigned(rule, [(rule.results[0], result)])
                self.wanted.setdefault(op.operands[0], self._layout(rule.operands[0], assignment))

    def _mark(self, op: Operation) -> list[Layout | None]:
        found = mark_of(op, self.mesh)
        if len(found) > len(op.operands):
            raise self._refused(op, f"{len(found)} layouts for {len(op.operands)} operands")
        for operand, layout in zip(op.operands, found, strict=True):
            if layout is not None:
                layout.local_shape(shape(operand))
        return found

    # --- forwards ---------------------------------------------------------------------------------------------------

    def _operation(self, op: Operation) -> Operation | None:
        """Give an operation its layouts; the operation that comes next."""
        if isinstance(op, ReturnOp):
            wanted = result_layouts(self.function, self.mesh, [self.layouts[a] for a in self.function.body.block.args])
            op.attributes[MS_LAYOUTS] = layouts_text(wanted, ())
            return op.next_op
        rule, marks = rule_of(op), self._mark(op)
        current = [mark or self._held(v) for v, mark in zip(op.operands, marks, strict=True)]
        if self._is_cut_elsewhere(op, rule, current) and (made := self._expanded(op, marks)) is not None:
            return made
        if isinstance(op, ms.GetParameterOp):
            layout = self.parameters.get(op.symbol) or self.wanted.get(op.result)
            layout = layout or Layout.whole(self.mesh, len(op.result_shape()))
            self.parameters[op.symbol] = layout
            self._note(op, [], [layout])
            return op.next_op
        if any(marks):
            marked = [(f, m) for f, m in zip(rule.operands, marks, strict=True) if m is not None]
            assignment = self._assigned(rule, marked)
            for (factors, mark), operand in zip(marked, op.operands, strict=False):
                if self._layout(factors, assignment).cuts != mark.cuts:
                    raise self._refused(op, f"{mark} of an operand of {shape(operand)} does not go with the others")
        assignment = self._cheapest(op, rule, current, marks)
        operands = [self._layout(f, assignment) for f in rule.operands]
        partial = tuple(axis for factor in rule.reduced for axis in assignment.get(factor, ()))
        reductions: list[Reduction] = [how for factor, how in rule.reduced.items() if assignment.get(factor)]
        results = [
            Layout(self.mesh, self._layout(f, assignment).cuts, partial, reductions[0] if partial else "sum")
            for f in rule.results
        ]
        self._note(op, operands, results)
        return op.next_op

    def _note(self, op: Operation, operands: Sequence[Layout], results: Sequence[Layout]) -> None:
        op.attributes[MS_LAYOUTS] = layouts_text(operands, results)
        op.attributes.pop(MS_SHARD, None)
        self.layouts.update(zip(op.results, results, strict=True))
        for operand, layout in zip(op.operands, operands, strict=True):
            if self._held(operand).partial:
                self.layouts[operand] = layout

    def _held(self, value: SSAValue) -> Layout:
        rank = len(shape(value)) if is_tensor(value.type) else 0
        return self.layouts.setdefault(value, Layout.whole(self.mesh, rank))

    def _is_cut_elsewhere(self, op: Operation, rule: Rule, current: Sequence[Layout]) -> bool:
        return any(
            factor is None and cut and size > 1
            for value, factors, layout in zip(op.operands, rule.operands, current, strict=True)
            for factor, cut, size in zip(factors, layout.cuts, shape(value) if factors else (), strict=True)
        )

    def _expanded(self, op: Operation, marks: Sequence[Layout | None]) -> Operation | None:
        """The first of the operations that a composite one is, in its place; None if it is none."""
        expand = expander.get(type(op)) if isinstance(op, MsOp) and not op.is_basic else None
        if expand is None or not isinstance(op, MsOp):
            return None
        emit = CompositeEmitter(op)
        value = expand(op, emit)
        ops = emit.finished(value)
        if not ops:
            return None
        of_operand = dict(zip(op.operands, marks, strict=True))
        for made in ops:
            set_location(made, op.location)
            follow(made, op)
            passed = [of_operand.get(v) for v in made.operands]
            if any(passed):
                made.attributes[MS_SHARD] = mark_text(passed)
        Rewriter.insert_op(ops, InsertPoint.before(op))
        value.name_hint = op.results[0].name_hint
        Rewriter.replace_op(op, [], [value])
        return ops[0]

    # --- what is cheapest -------------------------------------------------------------------------------------------

    def _cheapest(
        self, op: Operation, rule: Rule, current: Sequence[Layout], marks: Sequence[Layout | None]
    ) -> Assignment:
        known = [(f, layout) for f, layout, mark in zip(rule.operands, current, marks, strict=True) if mark is not None]
        given = [(f, layout) for f, layout, mark in zip(rule.operands, current, marks, strict=True) if mark is None]
        orders = list(itertools.permutations(given)) if len(given) <= 3 else [given, given[::-1]]
        candidates = [self._assigned(rule, [*known, *order]) for order in orders]
        if not known:
            candidates.append({})
        unique = {tuple(sorted(candidate.items())): candidate for candidate in candidates}
        return min(unique.values(), key=lambda candidate: self._cost(op, rule, candidate))

    def _cost(self, op: Operation, rule: Rule, assignment: Assignment) -> tuple[Fraction, int]:
        """The bytes that bring the operands there and make the results whole; less is more parts."""
        total = Fraction(0)
        for operand, factors in zip(op.operands, rule.operands, strict=True):
            if is_tensor(operand.type):
                steps = redistribute(self._held(operand), self._layout(factors, assignment))
                total += sum((step.share for step in steps), Fraction(0)) * bytes_of(operand)
        parts = math.prod(self.mesh.size_of(*axes) for axes in assignment.values())
        summed = self.mesh.size_of(*(axis for factor in rule.reduced for axis in assignment.get(factor, ())))
        for result, factors in zip(op.results, rule.results, strict=True):
            cut = math.prod(self._layout(factors, assignment).strategy)
            total += Fraction(2 * (summed - 1) * self.mesh.size, summed * cut) * bytes_of(result)
        return total, -parts

    def _assigned(
        self, rule: Rule, layouts: Sequence[tuple[Sequence[int | None], Layout]]
    ) -> dict[int, tuple[str, ...]]:
        """The axes of each factor: those of the first layout that cuts it, as far as they divide it and are free."""
        found: dict[int, tuple[str, ...]] = {}
        used: set[str] = set()
        for factor, cut in self._cuts(layouts):
            if factor in found:
                continue
            axes: tuple[str, ...] = ()
            for axis in cut:
                if axis in used or rule.divides[factor] % self.mesh.size_of(*axes, axis):
                    break
                axes = (*axes, axis)
            if axes:
                found[factor] = axes
                used |= set(axes)
        return found

    def _cuts(self, layouts: Sequence[tuple[Sequence[int | None], Layout]]) -> Iterator[tuple[int, tuple[str, ...]]]:
        for factors, layout in layouts:
            for factor, cut in zip(factors, layout.cuts, strict=False):
                if factor is not None and cut:
                    yield factor, cut

    def _layout(self, factors: Sequence[int | None], assignment: Assignment) -> Layout:
        cuts = (assignment.get(factor, ()) if factor is not None else () for factor in factors)
        return Layout(self.mesh, tuple(cuts))

    def _refused(self, op: Operation, why: str) -> MscError:
        message = f"{op.name} is not cut as its mark says: {why}"
        help = "a mark has a layout for each operand; dimensions that go together are cut by the same axes"
        return MscError(Diagnostic("MSC1106", message, source_location(op), help=help))
