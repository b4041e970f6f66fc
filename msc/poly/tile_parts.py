"""Where the loops of a plan end, if a call decides that."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir.affine import AffineExpr

from msc.poly.model import KernelModel
from msc.poly.plan import Member


def end_together(model: KernelModel, dims: Mapping[int, int]) -> bool:
    """Whether these dimensions of statements end at the same place, as those of one loop have to."""
    return len({model.statements[s].bound(d) for s, d in dims.items()}) <= 1


def member_bound(model: KernelModel, member: Member) -> AffineExpr | None:
    """Where the member ends, if before its extent: the same place for all its statements."""
    found = {model.statements[s].bound(d) for s, d in member.dims.items()}
    if len(found) > 1:
        raise ValueError(f"loop {member.name} ends at different places: {', '.join(sorted(map(str, found)))}")
    return found.pop() if found else None
