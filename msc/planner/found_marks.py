"""The layouts that a search finds, as marks of a function's operations, for `propagate-layouts` to spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from msc.dialects.ms.attributes import MS_SHARD
from msc.ir.typed import is_tensor, shape
from msc.parallel.marks import mark_of, mark_text
from msc.parallel.mesh import Mesh
from msc.planner.choice import over_memory
from msc.planner.cluster import Cluster
from msc.planner.layout_costs import LayoutCosts
from msc.planner.layout_search import SearchMode, search
from msc.planner.operators import CutAxis, GraphOperator, TensorSize, Use, graph_of, operations
from msc.planner.strategies import read_strategies, strategies_text, with_strategies
from msc.support.files import read_source


def mark_found(
    function: FuncOp, mesh: Mesh, cluster: Cluster, mode: SearchMode, *, results: Sequence[int],
    parameters: Mapping[SSAValue, str], rows: Sequence[BlockArgument], level: int | None, load: str = "",
) -> str:  # fmt: skip
    """Mark the operations that some results are computed of, but for those that have marks, which stay as they are.

    `parameters` are the arguments that have a name; `rows` those that come cut along all axes by their first dimension.
    With an optimizer `level` the costs are those of a training step; `load` is a file of strategies. Gives the text of
    the strategies. Raises MSC1122 if nothing fits the memory of a device, and MSC1125 for marks that no operation
    admits and for a file that does not fit.
    """
    ops = list(operations(function, _ancestors(function, results)))
    graph = graph_of(function, parameters, ops)
    if load:
        graph = with_strategies(graph, read_strategies(read_source(Path(load)), load), load)
    marks = {op: mark_of(op, mesh) for op in ops if MS_SHARD in op.attributes}
    for number, op in enumerate(ops):
        if op in marks:
            kept = [m for v, m in zip(op.operands, marks[op], strict=True) if is_tensor(v.type)]
            given = tuple(None if mark is None else mark.strategy for mark in kept)
            graph.operators[number] = replace(graph.operators[number], given=given)
    first = {op.operands[place]: u.tensor for n, op in enumerate(ops) for place, u in _uses(op, graph.operators[n])}
    for argument in rows:
        sizes = shape(argument)
        if argument in first and sizes[0] % mesh.size == 0:
            axes = tuple(CutAxis(f"d{d}", size) for d, size in enumerate(sizes))
            arrived = Use(len(graph.tensors), tuple(range(len(sizes))))
            graph.tensors.append(TensorSize("rows", sizes, graph.tensors[first[argument]].dtype))
            made = Use(first[argument], arrived.axes)
            given = ((mesh.size, *(1,) * (len(sizes) - 1)),)
            graph.operators.append(GraphOperator("rows", "reshape", axes, (arrived,), made, given=given))
    costs = LayoutCosts(graph, cluster, mesh, train=level is not None, optimizer_level=level or 0)
    found = search(costs, mode, cluster.free_memory)
    if found is None:
        least = [min(costs.operator(n, c).memory for c in costs.candidates(op)) for n, op in enumerate(graph.operators)]
        raise over_memory({"weights, states and activations": sum(least)}, cluster, f"on {mesh.size} ranks")
    for op, planned, cuts in zip(ops, graph.operators, found, strict=False):
        if op not in marks:
            layouts = {place: costs.named_layout(use, cuts) for place, use in _uses(op, planned)}
            op.attributes[MS_SHARD] = mark_text([layouts.get(place) for place in range(len(op.operands))])
    rows_of = zip(graph.operators[: len(ops)], found, strict=False)
    return strategies_text((op.name, [costs.strategy(use, cuts) for use in op.operands]) for op, cuts in rows_of)


def _uses(op: Operation, planned: GraphOperator) -> list[tuple[int, Use]]:
    """The operands that are tensors, by their place."""
    places = [place for place, value in enumerate(op.operands) if is_tensor(value.type)]
    return list(zip(places, planned.operands, strict=True))


def _ancestors(function: FuncOp, results: Sequence[int]) -> set[Operation]:
    """The operations that results are computed of."""
    last = function.body.block.last_op
    assert last is not None
    waiting: list[SSAValue] = [last.operands[k] for k in results]
    found: set[Operation] = set()
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Operation) and owner not in found:
            found.add(owner)
            waiting += owner.operands
    return found
