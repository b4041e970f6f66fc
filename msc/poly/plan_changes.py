"""What one plan does that another does not, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msc.poly.plan import Group, Member, Plan


def described_change(before: Plan, after: Plan) -> str:
    """The decisions of `after` that `before` takes otherwise: `oc tile 8, ow tile 3` or `order of S1: kw, kh`."""
    return ", ".join(_changes(before, after)) or "the same"


def _changes(before: Plan, after: Plan) -> Iterator[str]:
    yield from _loop_changes(before.band, after.band, "order")
    for old, new in zip(before.groups, after.groups, strict=False):
        yield from _loop_changes(old.inner, new.inner, f"order of {_statements(new)}")
    old, new = _vector_names(before), _vector_names(after)
    if old != new:
        yield f"vectors along {' and '.join(new)}" if new else "no vectors"


def _loop_changes(before: Sequence[Member], after: Sequence[Member], order: str) -> Iterator[str]:
    """Of loops over the same dimensions, one after the other."""
    known = {_key(m): m for m in before}
    for member in after:
        old = known.get(_key(member))
        if old is not None and old.tile != member.tile:
            yield f"{member.name} tile {member.tile}" if member.tile > 1 else f"{member.name} not tiled"
        if old is not None and (old.rest, old.along) != (member.rest, member.along):
            yield f"rest of {member.name} along {member.along}" if member.rest else f"{member.name} without a rest"
    if [_key(m) for m in before] != [_key(m) for m in after]:
        yield f"{order}: {', '.join(m.name for m in after)}"
    if _parallel(before) != _parallel(after):
        yield f"threads along {_parallel(after)}" if _parallel(after) else "one thread"


def _key(member: Member) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(member.dims.items()))


def _parallel(members: Iterable[Member]) -> str:
    return next((m.name for m in members if m.parallel), "")


def _vector_names(plan: Plan) -> tuple[str, ...]:
    """The loops that run as vectors, each name once."""
    loops = (*plan.band, *(m for g in plan.groups for m in g.inner))
    return tuple(dict.fromkeys(m.name for m in loops if m.vector))


def _statements(group: Group) -> str:
    return " ".join(f"S{s}" for s in group.statements)
