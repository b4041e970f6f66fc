"""What one rank passes to MPI: for each collective of a program the call, and count times size of its elements.

And whether the programs of all ranks meet: real ranks that do not would wait for each other for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from xdsl.ir import Operation

from msc.analysis.bytes import bytes_of
from msc.dialects import ms
from msc.dialects.ms.collectives import CollectiveOp
from msc.dialects.ranks import unmet
from msc.ir.locations import source_location
from msc.ir.typed import tensor_type

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


_WORDS = ("reduce", "root", "split", "concat", "axis", "ranks", "to")
"""Properties in which those that meet agree."""


@dataclass(frozen=True)
class Met:
    """A collective as a rank meets it: what it is, with whom, and the line that it comes of."""

    what: str
    members: tuple[int, ...]
    line: str

    def __str__(self) -> str:
        return f"{self.what} among {list(self.members)}" + (f" ({self.line})" if self.line else "")


def meetings(program: Operation, rank: int) -> list[Met]:
    """The collectives in which a rank takes part, in their order."""
    found: list[Met] = []
    for op in program.walk():
        if not isinstance(op, CollectiveOp) or isinstance(op, ms.AllSliceOp):
            continue
        members = next((group for group in op.members if rank in group), ())
        if len(members) > 1:
            words = "".join(f" {name} = {op.properties[name]}" for name in _WORDS if name in op.properties)
            place = source_location(op)
            what = f"{op.name}{words} of {tensor_type(op.x)}"
            found.append(Met(what, tuple(members), f"{place.file}:{place.line}" if place is not None else ""))
    return found


def meetings_text(found: Sequence[Met]) -> str:
    """Collectives as text, which another rank reads."""
    return json.dumps([asdict(met) for met in found])


def read_meetings(text: str) -> list[Met]:
    """What `meetings_text` wrote."""
    return [Met(each["what"], tuple(each["members"]), each["line"]) for each in json.loads(text)]


def check_meetings(sequences: Sequence[Sequence[Met]]) -> None:
    """Let all ranks meet, step by step. Raises MSC1104 where two meet different things, or wait for each other."""
    places = [0] * len(sequences)

    def following(rank: int) -> Met | None:
        return sequences[rank][places[rank]] if places[rank] < len(sequences[rank]) else None

    while True:
        moved = False
        for rank in range(len(sequences)):
            met = following(rank)
            if met is None:
                continue
            others = [following(member) for member in met.members]
            if all(o is not None and (o.what, o.members) == (met.what, met.members) for o in others):
                for member in met.members:
                    places[member] += 1
                moved = True
        if not moved:
            break
    rank = next((rank for rank in range(len(sequences)) if following(rank) is not None), None)
    if rank is not None:
        met = following(rank)
        assert met is not None
        same = (met.what, met.members)
        other = next(m for m in met.members if (o := following(m)) is None or (o.what, o.members) != same)
        found = following(other) or "nothing more"
        number = places[rank]
        message = f"rank {rank} would wait for ever: its collective {number} is {met}, and rank {other} has {found}"
        raise unmet(message, "all ranks run one program: the same model, data shapes, settings and version of msc")
