"""Static memory planning: offsets for buffers of known sizes and lifetimes in one arena. Plain Python.

Two buffers may share bytes if they are never live at the same time; and one may begin inside of another if it lies so
far behind it that what a kernel still reads is not yet written. Minimising the arena is dynamic storage allocation,
which is NP-hard. The heuristics are those of the literature (greedy by size: Pisarchyk and Lee, "Efficient Memory
Management for Deep Neural Net Inference", 2020; best-fit with the lowest gap), and the best result is used. Where it
is above the peak of live bytes, which most networks reach, what lies on top is placed earlier, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes to which buffers are aligned where a machine says nothing else."""


@dataclass(frozen=True)
class Interval:
    """The steps at which a buffer is live, both ends included."""

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"the interval {self.first}..{self.last} is empty")

    def meets(self, other: Interval) -> bool:
        """Whether both are live at some step."""
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


@dataclass(frozen=True)
class Demand:
    """A buffer that needs a place: its bytes, and when it is live."""

    bytes: int
    live: Interval


@dataclass(frozen=True)
class Distances:
    """From where a buffer begins to where another one may begin that overlaps it: from `least` on, or up to `most`."""

    least: int
    most: int

    def both(self, other: Distances) -> Distances:
        """Distances that are good for both."""
        return Distances(max(self.least, other.least), min(self.most, other.most))

    def __contains__(self, distance: int) -> bool:
        return distance >= self.least or distance <= self.most


@dataclass(frozen=True)
class Arena:
    """A plan: the offset of each demand, the bytes of the whole, and by which strategy."""

    offsets: tuple[int, ...]
    bytes: int
    strategy: str


def aligned(size: int, alignment: int = ALIGNMENT) -> int:
    """The next multiple of the alignment."""
    return -(-size // alignment) * alignment


def lower_bound(demands: Sequence[Demand], alignment: int = ALIGNMENT) -> int:
    """The most bytes live at one step, each buffer rounded up to the alignment; no plan takes less."""
    changes: dict[int, int] = {}
    for demand in demands:
        size = aligned(demand.bytes, alignment)
        changes[demand.live.first] = changes.get(demand.live.first, 0) + size
        changes[demand.live.last + 1] = changes.get(demand.live.last + 1, 0) - size
    live = most = 0
    for step in sorted(changes):
        live += changes[step]
        most = max(most, live)
    return most


def plan_arena(
    demands: Sequence[Demand], alignment: int = ALIGNMENT, apart: Mapping[tuple[int, int], Distances] | None = None
) -> Arena:
    """The smallest arena that the strategies find; the first of equals, so that plans are reproducible.

    Buffers begin at multiples of `alignment` bytes. A pair of demands that `apart` has may overlap at these distances.
    """
    bound, near = lower_bound(demands, alignment), apart or {}
    orders = [sorted(range(len(demands)), key=lambda i, of=of: (*of(demands[i]), i)) for _, of, _ in _STRATEGIES]
    best: Arena | None = None
    for _ in range(_ROUNDS if len(demands) <= _FEW else 1):
        for order, (name, _, choose) in zip(orders, _STRATEGIES, strict=True):
            plan = _place(demands, alignment, name, order, choose, near)
            best = plan if best is None or plan.bytes < best.bytes else best
            if not demands or (best.bytes <= bound and not near):
                return best
            order.insert(0, order.pop(max(range(len(order)), key=lambda k: _end(demands, plan, order[k]))))
    return best if best is not None else Arena((), 0, "none")


def _end(demands: Sequence[Demand], plan: Arena, index: int) -> int:
    return plan.offsets[index] + demands[index].bytes


def overlaps(demands: Sequence[Demand], offsets: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Pairs of demands that share bytes while both are live: a plan is right if there are none."""
    for j, b in enumerate(demands):
        for i, a in enumerate(demands[:j]):
            apart = offsets[i] + a.bytes <= offsets[j] or offsets[j] + b.bytes <= offsets[i]
            if not apart and a.bytes and b.bytes and a.live.meets(b.live):
                yield i, j


_Gap = tuple[int, int | None]
"""Where a free stretch begins, and its bytes; None for the open end."""


def _first_fit(gaps: Sequence[_Gap]) -> int:
    return gaps[0][0]


def _best_fit(gaps: Sequence[_Gap]) -> int:
    """The tightest gap; the open end only if there is no other."""
    return min(gaps, key=lambda gap: (gap[1] is None, gap[1] or 0))[0]


def _place(
    demands: Sequence[Demand],
    alignment: int,
    name: str,
    order: Sequence[int],
    choose: Callable[[Sequence[_Gap]], int],
    apart: Mapping[tuple[int, int], Distances],
) -> Arena:
    offsets, placed = [0] * len(demands), list[int]()
    for index in order:
        demand = demands[index]
        if not demand.bytes:
            continue
        taken: list[tuple[int, int]] = []
        for other in placed:
            if demand.live.meets(demands[other].live):
                last, next_ = -demand.bytes, demands[other].bytes
                if (other, index) in apart:
                    last, next_ = apart[other, index].most, apart[other, index].least
                elif (index, other) in apart:
                    last, next_ = -apart[index, other].least, -apart[index, other].most
                taken.append((offsets[other] + last, offsets[other] + next_))
        offsets[index] = choose(_gaps(sorted(taken), demand.bytes, alignment))
        placed.append(index)
    total = max((offset + d.bytes for offset, d in zip(offsets, demands, strict=True)), default=0)
    return Arena(tuple(offsets), aligned(total, alignment), name)


def _gaps(taken: Sequence[tuple[int, int]], size: int, alignment: int) -> list[_Gap]:
    """The stretches that hold `size` bytes; the last is open. None begins between the two ends of one that is taken."""
    gaps: list[_Gap] = []
    free = 0
    for last, next_ in taken:
        if last >= free:
            gaps.append((free, last - free + size))
        free = max(free, aligned(next_, alignment))
    return [*gaps, (free, None)]


def _by_size(demand: Demand) -> tuple[int, ...]:
    return -demand.bytes, demand.live.first


def _by_time(demand: Demand) -> tuple[int, ...]:
    return demand.live.first, -demand.bytes


def _by_area(demand: Demand) -> tuple[int, ...]:
    """Bytes times steps."""
    return -demand.bytes * (demand.live.last - demand.live.first + 1), demand.live.first


_ROUNDS = 16
"""How often what lies on top is placed earlier, of so `_FEW` buffers."""
_FEW = 256
_STRATEGIES = (
    ("largest first, best fit", _by_size, _best_fit),
    ("earliest first, first fit", _by_time, _first_fit),
    ("largest area first, best fit", _by_area, _best_fit),
    ("largest first, first fit", _by_size, _first_fit),
)
