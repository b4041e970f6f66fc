"""Pass `prefetch-epilogues`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass

from msc.analysis.properties import KERNEL_FUNCTIONS, VECTORS
from msc.analysis.target import target_of
from msc.dialects.loop import ForOp, LoadOp, LoopKind, StoreOp
from msc.ir.contracts import Contract
from msc.lowering.cpu.prefetch.next_panel import PrefetchAddress, counts_from_zero, distance, trips
from msc.lowering.cpu.prefetch.prefetch_streams import is_linear, line_prefetches, operand_bytes
from msc.targets.machine import Machine

LEAST = 16
"""Steps of a part: fewer are not worth a loop."""


@dataclass(frozen=True)
class PrefetchEpilogues(ModulePass):
    """Prefetch what the epilogue of a register tile reads from beyond L2, while the tile sums.

    Takes kernels' functions with vectors. An epilogue, such as the update of a weight with its gradient, reads a few
    lines of each row of the tile. The hardware sees no stream in them, and the tile needs all of them at once when its
    sums are done. So the loop of the sums is cut into parts, one after the other, and at the start of each the lines of
    one row are asked for. Keeps: all results.
    """

    name = "prefetch-epilogues"
    contract = Contract(
        requires=(KERNEL_FUNCTIONS, VECTORS),
        runs_after={
            "prefetch-streams": "streams are measured along whole loops",
            "block-sums": "it cuts long sums, and counts their terms by whole loops",
        },
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = target_of(op).machine
        for loop in [loop for loop in op.walk() if isinstance(loop, ForOp)]:
            if loop.kind.data is LoopKind.SEQUENTIAL and counts_from_zero(loop):
                _prefetch(loop, machine)


def _prefetch(sums: ForOp, machine: Machine) -> None:
    found = [e for e in _epilogue_loads(sums) if operand_bytes(e.load) > machine.l2 and is_linear(e.load)]
    parts = _cut(sums, max(trips(e.rows) for e in found)) if found else None
    if parts is None or parts.body.block.first_op is None:
        return
    for each in found:
        op = line_prefetches(each.load, each.of_row(parts), each.tile, machine)
        parts.body.block.insert_op_before(op, parts.body.block.first_op)


@dataclass(frozen=True)
class _EpilogueLoad:
    """A load of the epilogue in the unrolled loops of a tile, of which `rows` is the outermost that it moves with."""

    load: LoadOp
    rows: ForOp
    tile: Sequence[ForOp]

    def of_row(self, part: ForOp) -> PrefetchAddress:
        """The address in the row whose number is that of the part."""
        indices = tuple(part.variable if v is self.rows.variable else v for v in self.load.indices)
        dims = [AffineExpr.dimension(k) for k in range(len(indices))]
        row = list(self.load.indices).index(self.rows.variable)
        first = [AffineExpr.constant(0) if k == row else d for k, d in enumerate(dims)]
        results = tuple(e.replace_dims_and_symbols(first, []) for e in self.load.map.results)
        ahead = dims[row] * distance(self.load, self.rows)
        return PrefetchAddress(AffineMap(len(indices), 0, results), indices, ahead)


def _epilogue_loads(sums: ForOp) -> list[_EpilogueLoad]:
    """The loads behind a loop of sums, below unrolled loops only, of arguments that these loops do not write."""
    op, loads, written = sums.next_op, list[_EpilogueLoad](), set[SSAValue]()
    while op is not None and not (isinstance(op, ForOp) and op.kind.data is not LoopKind.UNROLL):
        loads += _loads(op, ())
        written |= {inner.target for inner in op.walk() if isinstance(inner, StoreOp)}
        op = op.next_op
    return [each for each in loads if each.load.source not in written]


def _loads(op: Operation, tile: tuple[ForOp, ...]) -> Iterator[_EpilogueLoad]:
    if isinstance(op, ForOp) and op.kind.data is LoopKind.UNROLL and op.constant_range is not None:
        for inner in op.body.block.ops:
            yield from _loads(inner, (*tile, op))
    elif isinstance(op, LoadOp) and isinstance(op.source, BlockArgument):
        moving = [loop for loop in tile if loop.variable in op.indices]
        if len(moving) > 1 and counts_from_zero(moving[0]):
            yield _EpilogueLoad(op, moving[0], moving[1:])


def _cut(sums: ForOp, rows: int) -> ForOp | None:
    """The loop of the parts of sums, as many as rows or a few more; None where no even parts are long enough."""
    steps = trips(sums)
    parts = next((n for n in range(rows, steps // LEAST + 1) if steps % n == 0), None)
    block = sums.parent
    if parts is None or parts >= 2 * rows or block is None:
        return None
    outer = ForOp(AffineMap.constant_map(0), AffineMap.constant_map(parts))
    block.insert_op_before(outer, sums)
    sums.detach()
    part = AffineExpr.dimension(0) * (steps // parts)
    inner = ForOp(
        AffineMap(1, 0, (part,)), AffineMap(1, 0, (part + steps // parts,)), [outer.variable],
        label=sums.label.data if sums.label is not None else None, body=sums.detach_region(0),
    )  # fmt: skip
    inner.location = outer.location = sums.location
    outer.body.block.add_op(inner)
    outer.variable.name_hint = inner.variable.name_hint
    sums.erase()
    return outer
