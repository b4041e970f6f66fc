"""What one rank passes to MPI: for each collective of a program the call, and count times size of its elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import Operation

from msc.analysis.bytes import bytes_of
from msc.dialects import ms
from msc.dialects.ms.collectives import CollectiveOp

CALLS: dict[type[CollectiveOp], str] = {
    ms.AllReduceOp: "MPI_Allreduce",
    ms.AllGatherOp: "MPI_Allgather",
    ms.ReduceScatterOp: "MPI_Reduce_scatter_block",
    ms.AllToAllOp: "MPI_Alltoall",
    ms.BroadcastOp: "MPI_Bcast",
    ms.SendRecvOp: "MPI_Sendrecv",
}


@dataclass(frozen=True)
class Passed:
    """A call of MPI, and the bytes of its count: those of one part where the call sends several."""

    call: str
    bytes: int


def passed(program: Operation) -> Iterator[Passed]:
    """The calls of a program of one rank, in their order. 16-bit floats are summed as f32."""
    for op in program.walk():
        if isinstance(op, CollectiveOp) and type(op) in CALLS and op.group_size > 1:
            reduces = "reduce" in op.properties
            wide = 2 if reduces and op.dtype(0) in ("f16", "bf16") else 1
            parts = op.group_size if isinstance(op, ms.ReduceScatterOp | ms.AllToAllOp) else 1
            yield Passed(CALLS[type(op)], bytes_of(op.x) * wide // parts)
