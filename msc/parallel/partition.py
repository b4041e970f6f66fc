"""Pass `partition`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from msc.analysis.properties import SHAPES_KNOWN
from msc.dialects import ms
from msc.dialects.arrays import dense_array
from msc.dialects.ms.attributes import MS_LAYOUTS, MS_SHARDING
from msc.dialects.ms.base import BasicOp, MsOp
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.generic import statements_text
from msc.dialects.ms.pipeline import follow
from msc.dialects.ms.properties import to_attribute
from msc.dialects.ms.structure import ParameterOp
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.locations import set_location, source_location
from msc.ir.typed import is_tensor, shape, tensor_type
from msc.parallel.layouts import Layout
from msc.parallel.marks import argument_layouts, layouts_of, mesh_of, result_layouts
from msc.parallel.mesh import Mesh
from msc.parallel.redistribution import Transfer, redistribute
from msc.parallel.rules import only_dimension
from msc.poly.affine import simplified
from msc.poly.compute import Statement
from msc.poly.scalar import Index, Read, Scalar, reads, rewritten
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class Partition(ModulePass):
    """Make the program of one rank out of that of all.

    Takes: a graph whose operations have layouts (`propagate-layouts`). Gives: the same graph on the parts that one rank
    has, with collectives where an operand is to lie otherwise than it does; the first use of a partial value reduces
    it. Arguments, results and parameters are whole, and a rank takes its part of them; with `local` they are the rank's
    parts, as their `ms.sharding` says. All ranks run this one program, so that all run the same collectives in the same
    order: none stands inside a branch or a loop, whose operands are whole.
    Raises MSC1107 for an operation whose part is no operation of its kind.
    """

    name = "partition"
    contract = Contract(requires=(SHAPES_KNOWN,))
    local: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        mesh = mesh_of(op)
        if mesh is None:
            return
        for function in entries(op):
            _Partition(mesh, function, self.local).run()


@dataclass
class _Partition:
    mesh: Mesh
    function: FuncOp
    local: bool
    held: dict[SSAValue, Layout] = field(default_factory=dict[SSAValue, Layout])
    others: dict[tuple[SSAValue, Layout], SSAValue] = field(default_factory=dict[tuple[SSAValue, Layout], SSAValue])
    computed: dict[Operation, Sequence[Statement]] = field(default_factory=dict[Operation, Sequence[Statement]])
    reduced: dict[SSAValue, tuple[SSAValue, Layout]] = field(default_factory=dict[SSAValue, tuple[SSAValue, Layout]])

    def run(self) -> None:
        block = self.function.body.block
        self.computed = {
            op: op.compute() for op in block.ops if isinstance(op, BasicOp) and op.is_basic and self._is_cut(op)
        }
        arguments = argument_layouts(self.function, self.mesh, {})
        known = [layout or Layout.whole(self.mesh, 0) for layout in arguments]
        results = result_layouts(self.function, self.mesh, known)
        for argument, layout in zip(block.args, known, strict=True):
            self.held[argument] = layout if self.local else Layout.whole(self.mesh, len(layout.cuts))
            if self.local and is_tensor(argument.type):
                Rewriter.replace_value_with_new_type(argument, self._part(argument.type, layout))
        self.held = dict(zip(block.args, self.held.values(), strict=True))
        for op in list(block.ops):
            if isinstance(op, ReturnOp):
                whole = [Layout.whole(self.mesh, len(layout.cuts)) for layout in results]
                self._bring(op, results if self.local else whole)
                op.attributes.pop(MS_LAYOUTS, None)
            else:
                self._operation(op)
        self.function.update_function_type()

    def _part(self, type_: Attribute, layout: Layout) -> TensorType[Attribute]:
        tensor = tensor_type(type_)
        return TensorType(tensor.element_type, layout.local_shape(tensor.get_shape()))

    def _operation(self, op: Operation) -> None:
        if MS_LAYOUTS not in op.attributes:
            raise self._not_partitioned(op, "it has no layouts: propagate-layouts gives them")
        operands, results = layouts_of(op, self.mesh)
        if isinstance(op, ms.GetParameterOp):
            self._parameter(op, results[0])
            del op.attributes[MS_LAYOUTS]
            return
        for region in op.regions:
            self._bring_captured(op, list(region.walk()))
        cut = self._is_cut(op)
        self._bring(op, operands)
        if isinstance(op, ms.ConstantOp):
            self._constant(op, results[0])
        elif isinstance(op, MsOp) and cut:
            self._cut(op, self.computed.get(op, ()), operands, results)
        del op.attributes[MS_LAYOUTS]
        self.held.update(zip(op.results, results, strict=True))

    def _is_cut(self, op: Operation) -> bool:
        if MS_LAYOUTS not in op.attributes:
            return False
        operands, results = layouts_of(op, self.mesh)
        return any(layout.axes or layout.partial for layout in (*operands, *results))

    def _parameter(self, op: ms.GetParameterOp, layout: Layout) -> None:
        whole = Layout.whole(self.mesh, len(layout.cuts))
        if not self.local or not layout.axes:
            self.held[op.result] = whole
            return
        module = self.function.parent_op()
        assert isinstance(module, ModuleOp)
        declared = next(p for p in module.ops if isinstance(p, ParameterOp) and p.symbol == op.symbol)
        if MS_SHARDING not in declared.attributes or declared.type == op.result.type:
            declared.attributes[MS_SHARDING] = to_attribute(str(layout))
            declared.properties["type"] = self._part(op.result.type, layout)
        op.set_result_types([declared.type])
        self.held[op.result] = layout

    def _constant(self, op: ms.ConstantOp, layout: Layout) -> None:
        """Equal elements are made where they are needed."""
        if layout.axes:
            part = layout.local_shape(op.result_shape())
            value = np.broadcast_to(dense_array(op.value).reshape(-1)[0], part)
            op.properties["value"] = constant_of(np.ascontiguousarray(value)).value
            op.set_result_types(op.infer())

    def _cut(
        self, op: MsOp, before: Sequence[Statement], operands: Sequence[Layout], results: Sequence[Layout]
    ) -> None:
        """Let the operation compute its part: of the same definition, over a smaller box."""
        expected = [self._part(result.type, layout) for result, layout in zip(op.results, results, strict=True)]
        shapes = [shape(result) for result in op.results]
        for name in list(op.properties):
            if op.plain(name) == shapes[0] and shapes[0]:
                op.properties[name] = to_attribute(list(shape(expected[0])))
        if isinstance(op, ms.ComputeOp):
            smaller = [_over_part(statement, operands, results) for statement in before]
            op.properties["statements"] = to_attribute(statements_text(smaller))
        op.set_result_types(op.infer())
        for result, type_ in zip(op.results, expected, strict=True):
            if result.type != type_:
                raise self._not_partitioned(op, f"its part is a {result.type}, not a {type_}")
        after = op.compute() if before and isinstance(op, BasicOp) else ()
        if any(_computes(a, b) != _computes(b, b) for a, b in zip(before, after, strict=True)):
            raise self._not_partitioned(op, "its part computes something else")

    def _bring_captured(self, op: Operation, inside: Sequence[Operation]) -> None:
        """What a branch or a loop reads from outside is whole."""
        for inner in inside:
            for n, value in enumerate(inner.operands):
                if value in self.held and is_tensor(value.type):
                    inner.operands[n] = self._as(value, Layout.whole(self.mesh, len(shape(value))), op)

    def _bring(self, op: Operation, layouts: Sequence[Layout]) -> None:
        for n, (value, layout) in enumerate(zip(list(op.operands), layouts, strict=True)):
            op.operands[n] = self._as(value, layout, op)

    def _as(self, value: SSAValue, layout: Layout, before: Operation) -> SSAValue:
        """The value in a layout. A partial one is reduced at its first use, and is what that made of it afterwards."""
        value, held = self.reduced.get(value, (value, self.held[value]))
        if held == layout or not is_tensor(value.type):
            return value
        if (value, layout) not in self.others:
            sizes = [size * parts for size, parts in zip(shape(value), held.strategy, strict=True)]
            made = value
            for step in redistribute(held, layout, sizes):
                made = self._transferred(made, step, before)
            self.others[value, layout] = made
            if held.partial:
                self.reduced[value] = (made, layout)
                self.held[made] = layout
        return self.others[value, layout]

    def _transferred(self, value: SSAValue, step: Transfer, before: Operation) -> SSAValue:
        ranks = [rank for group in step.groups for rank in group]
        groups: dict[str, Any] = {"ranks": ranks, "groups": len(step.groups)}
        match step.kind:
            case "all_gather":
                op = ms.AllGatherOp(value, axis=step.dimension, **groups)
            case "all_slice":
                op = ms.AllSliceOp(value, axis=step.dimension, **groups)
            case "all_to_all":
                op = ms.AllToAllOp(value, split=step.target, concat=step.dimension, **groups)
            case "all_reduce":
                op = ms.AllReduceOp(value, reduce=step.before.reduction, **groups)
            case "reduce_scatter":
                op = ms.ReduceScatterOp(value, axis=step.dimension, reduce=step.before.reduction, **groups)
            case "permute":
                stay = [rank for rank in range(self.mesh.size) if rank not in {to for _, to in step.pairs}]
                pairs = [*step.pairs, *((rank, rank) for rank in stay)]
                op = ms.SendRecvOp(value, ranks=[a for a, _ in pairs], to=[b for _, b in pairs])
        set_location(op, before.location)
        follow(op, before)
        op.result.name_hint = value.name_hint
        Rewriter.insert_op(op, InsertPoint.before(before))
        return op.result

    def _not_partitioned(self, op: Operation, why: str) -> MscError:
        help = "mark it with a layout that leaves it whole"
        return MscError(Diagnostic("MSC1107", f"{op.name} is not partitioned: {why}", source_location(op), help=help))


def _over_part(statement: Statement, operands: Sequence[Layout], results: Sequence[Layout]) -> Statement:
    """The statement over the iterations of one rank: dimensions of tensors that are cut have fewer steps."""
    accesses = [(statement.write.results, results[statement.result])]
    accesses += [(read.index.results, operands[read.operand]) for read in reads(statement.body)]
    extents = list(statement.extents)
    for exprs, layout in accesses:
        for expr, parts in zip(exprs, layout.strategy, strict=True):
            dimension = only_dimension(expr)
            if dimension is not None and parts > 1:
                extents[dimension] = statement.extents[dimension] // parts
    return replace(statement, extents=tuple(extents))


def _computes(statement: Statement, part: Statement) -> tuple[object, ...]:
    """All that a statement computes but for how often, where a dimension of which `part` has one step is at 0."""
    count = len(statement.extents)
    at = [AffineExpr.constant(0) if n == 1 else AffineExpr.dimension(d) for d, n in enumerate(part.extents)]

    def moved(index: AffineMap) -> AffineMap:
        return AffineMap(count, 0, tuple(simplified(e.replace_dims_and_symbols(at, [])) for e in index.results))

    def change(leaf: Read | Index) -> Scalar:
        if isinstance(leaf, Index):
            return Index(simplified(leaf.expr.replace_dims_and_symbols(at, [])), leaf.dtype)
        return replace(leaf, index=moved(leaf.index))

    body = rewritten(statement.body, change)
    return (moved(statement.write), body, statement.combine, statement.result, statement.accumulate)
