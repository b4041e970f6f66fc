"""The parts that a member of a plan's band is cut into, each with tiles of one size.

A member that ends at a bound over the sizes has a part for each of ever smaller tiles, down to single iterations: each
takes what whole tiles fill of what the ones before left. How many tiles end there is a parameter of its own
(`tile_counts`): isl need not know that a part may hold only one, which would make it no loop but a guard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.ir.affine import AffineExpr

from msc.poly.dependences import isl_expr
from msc.poly.model import KernelModel
from msc.poly.plan import Member, Plan
from msc.poly.valid_extents import over_symbols


@dataclass(frozen=True)
class Part:
    """The range [low, high) of a member's extent, in isl's syntax, cut into tiles of `tile`.

    `single` if one tile is all of it; `even` if all its tiles are whole.
    """

    low: str
    high: str
    tile: int
    single: bool = False
    even: bool = True


def halves(lanes: Member, part: Part) -> list[tuple[int, Part]]:
    """The last part of the vector loop: what runs along it, if it is more than the rest, and what runs across."""
    border = lanes.extent - lanes.rest
    whole = border - int(part.low)
    rest = 1, replace(part, low=str(border), tile=lanes.rest)
    return [(0, replace(part, high=str(border), tile=whole)), rest] if whole else [rest]


def parts_of(model: KernelModel, member: Member) -> list[Part]:
    """All parts of a member, in order."""
    bound = member_bound(model, member)
    return _closed_parts(member) if bound is None else open_parts(member, bound)


def _closed_parts(member: Member) -> list[Part]:
    """The member's extent as whole tiles and, where they do not fill it, a rest that is one smaller tile."""
    whole = member.extent - member.extent % member.tile
    parts = [Part("0", str(whole), member.tile, whole == member.tile)] if whole else []
    if whole < member.extent:
        parts.append(Part(str(whole), str(member.extent), member.extent - whole, single=True))
    return parts


def open_parts(member: Member, bound: AffineExpr) -> list[Part]:
    """Parts of ever smaller tiles; a vector loop over all iterations stays one."""
    limit = isl_expr(over_symbols(bound))
    if member.vector and member.tile == member.extent:
        return [Part("0", limit, member.tile, single=True, even=False)]
    parts, low = list[Part](), "0"
    for tile in _smaller_tiles(member):
        high = f"{low} + {tile}*{_count_name(bound, member, tile)}"
        parts.append(Part(low, high, tile))
        low = high
    return [*parts, Part(low, limit, 1)]


def _smaller_tiles(member: Member) -> list[int]:
    """The member's tile, half of it, half of that, and so on above 1."""
    return [member.tile >> k for k in range(member.tile.bit_length() - 1)]


def end_together(model: KernelModel, dims: Mapping[int, int]) -> bool:
    """Whether these dimensions of statements end at the same place, as those of one loop have to."""
    return len({model.statements[s].bound(d) for s, d in dims.items()}) <= 1


def member_bound(model: KernelModel, member: Member) -> AffineExpr | None:
    """Where the member ends, if before its extent: the same place for all its statements."""
    found = {model.statements[s].bound(d) for s, d in member.dims.items()}
    if len(found) > 1:
        raise ValueError(f"loop {member.name} ends at different places: {', '.join(sorted(map(str, found)))}")
    return found.pop() if found else None


def tile_counts(model: KernelModel, plan: Plan) -> dict[str, AffineExpr]:
    """Isl's parameters that count the tiles of members with a bound, and their values over the sizes."""
    counts: dict[str, AffineExpr] = {}
    for member in plan.band:
        rest = bound = member_bound(model, member)
        if bound is None or rest is None or (member.vector and member.tile == member.extent):
            continue
        for tile in _smaller_tiles(member):
            counts[_count_name(bound, member, tile)] = rest // tile
            rest = rest % tile
    return counts


def _count_name(bound: AffineExpr, member: Member, tile: int) -> str:
    letters = "".join(c if c.isalnum() else "_" for c in isl_expr(over_symbols(bound)))
    return f"tiles{tile}_of_{member.tile}_in_{letters}"
