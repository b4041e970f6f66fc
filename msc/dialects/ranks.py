"""The ranks of an interpreted program: all of them in one process, each in a thread, where collectives meet.

Every collective is one exchange: a rank gives its tensor and gets those of its group; what it makes of them is the
operation's meaning. A rank that meets another operation than its group, or nobody, ends the run in words (MSC1104):
real ranks would wait for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from typing import Protocol, TypeVar

import numpy as np

from msc.dialects.arrays import Array
from msc.support.diagnostics import Diagnostic, MscError

ResultT = TypeVar("ResultT")

_REDUCERS: Mapping[str, Callable[[Array, Array], Array]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


class Ranks(Protocol):
    """What a rank knows of the others."""

    @property
    def rank(self) -> int:
        """Its own number."""
        ...

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    def exchange(self, members: Sequence[int], what: str, value: Array) -> Sequence[Array]:
        """The values of all members, in their order, who do the same as `what` says. Raises MSC1104."""
        ...


@dataclass(frozen=True)
class _Alone:
    """Rank 0 of 1."""

    rank: int = 0
    size: int = 1

    def exchange(self, members: Sequence[int], what: str, value: Array) -> Sequence[Array]:
        if list(members) != [0]:
            raise unmet(f"{what} among ranks {list(members)}, but this is rank 0 of 1", "run it on all its ranks")
        return [value]


_process: list[Ranks] = [_Alone()]
_current: ContextVar[Ranks | None] = ContextVar("ranks", default=None)


def current_ranks() -> Ranks:
    """The ranks of the program that is running: those that are interpreted together, else those of the process."""
    return _current.get() or _process[0]


def install(ranks: Ranks) -> None:
    """Have this process be one of several ranks, whatever thread asks."""
    _process[0] = ranks


def own_group(groups: Sequence[Sequence[int]]) -> Sequence[int]:
    """The group of this rank; of one that is in none, the first."""
    rank = current_ranks().rank
    return next((members for members in groups if rank in members), groups[0])


def exchanged(groups: Sequence[Sequence[int]], what: str, value: Array) -> tuple[Sequence[Array], int]:
    """The values of the group of this rank, and its place there. Raises MSC1104."""
    members = own_group(groups)
    shape = "x".join(map(str, value.shape))
    values = current_ranks().exchange(members, f"{what} of {shape} {value.dtype}", value)
    return values, members.index(current_ranks().rank)


def sent(sources: Sequence[int], receivers: Sequence[int], what: str, value: Array) -> Array:
    """The value of the rank that sends to this one; zeros if none does. Raises MSC1104."""
    rank, members = current_ranks().rank, sorted({*sources, *receivers})
    if rank not in members:
        return np.zeros_like(value)
    values, _ = exchanged([members], what, value)
    source = next((s for s, to in zip(sources, receivers, strict=True) if to == rank), None)
    return np.zeros_like(value) if source is None else values[members.index(source)]


def reduced(word: str, values: Sequence[Array]) -> Array:
    """The sum (or prod, max, min) of the values, in the order of the ranks."""
    return reduce(_REDUCERS[word], values)


def run_ranks(count: int, program: Callable[[int], ResultT]) -> list[ResultT]:
    """What `program` gives on each of `count` ranks, which run together.

    Raises what a rank raised, and MSC1104 if ranks meet different collectives or wait for one that never comes.
    """
    meeting = _Meeting(count)

    def run(rank: int) -> ResultT:
        token = _current.set(_Rank(rank, meeting))
        try:
            return program(rank)
        except BaseException as error:
            meeting.fail(error)
            raise
        finally:
            _current.reset(token)
            meeting.leave(rank)

    with ThreadPoolExecutor(count) as pool:
        running = [pool.submit(run, rank) for rank in range(count)]
    if meeting.error is not None:
        raise meeting.error
    return [future.result() for future in running]


@dataclass
class _Exchange:
    """What members of a group have brought to their next collective."""

    what: str
    values: dict[int, Array] = field(default_factory=dict[int, Array])
    taken: int = 0


@dataclass
class _Meeting:
    """Where ranks meet. A rank waits for a group; when all that run wait, none ever goes on."""

    count: int
    error: BaseException | None = None
    waiting: dict[int, str] = field(default_factory=dict[int, str])
    left: set[int] = field(default_factory=set[int])
    changed: threading.Condition = field(default_factory=threading.Condition)
    exchanges: dict[tuple[int, ...], _Exchange] = field(default_factory=dict[tuple[int, ...], _Exchange])

    def fail(self, error: BaseException) -> None:
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

    def leave(self, rank: int) -> None:
        with self.changed:
            self.left.add(rank)
            self._look_for_deadlock()
            self.changed.notify_all()

    def exchange(self, rank: int, members: tuple[int, ...], what: str, value: Array) -> list[Array]:
        with self.changed:
            found = self._joined(rank, members, what)
            found.values[rank] = value
            if len(found.values) == len(members):
                for member in members:
                    self.waiting.pop(member, None)
                self.changed.notify_all()
            else:
                self.waiting[rank] = what
                self._look_for_deadlock()
            self.changed.wait_for(lambda: self.error is not None or len(found.values) == len(members))
            self._stop_if_failed()
            found.taken += 1
            if found.taken == len(members):
                del self.exchanges[members]
                self.changed.notify_all()
            return [found.values[member] for member in members]

    def _joined(self, rank: int, members: tuple[int, ...], what: str) -> _Exchange:
        """The exchange of the group that this rank has not been in yet."""
        if rank not in members or not all(0 <= member < self.count for member in members):
            raise unmet(f"rank {rank} of {self.count} meets {what} among {list(members)}", "name ranks there are")
        self.changed.wait_for(
            lambda: (
                self.error is not None or members not in self.exchanges or rank not in self.exchanges[members].values
            )
        )
        self._stop_if_failed()
        found = self.exchanges.setdefault(members, _Exchange(what))
        if found.what != what:
            others = ", ".join(map(str, sorted(found.values)))
            self.error = unmet(f"rank {rank} meets {what}, but rank {others} meets {found.what}", _SAME)
            self.changed.notify_all()
        self._stop_if_failed()
        return found

    def _stays_in(self, members: tuple[int, ...], rank: int) -> bool:
        """Whether the last exchange of a group, in which this rank was, has not ended."""
        return members in self.exchanges and rank in self.exchanges[members].values

    def _stop_if_failed(self) -> None:
        if self.error is not None:
            raise self.error

    def _look_for_deadlock(self) -> None:
        if self.error is None and self.waiting and len(self.waiting) + len(self.left) == self.count:
            rank, what = next(iter(self.waiting.items()))
            ended = f"; ranks {sorted(self.left)} have ended" if self.left else ""
            self.error = unmet(f"all ranks wait: rank {rank} for {what}{ended}", _SAME)
            self.changed.notify_all()


_SAME = "all ranks of a group run the same collectives in the same order, with tensors of one shape"


@dataclass(frozen=True)
class _Rank:
    rank: int
    meeting: _Meeting

    @property
    def size(self) -> int:
        return self.meeting.count

    def exchange(self, members: Sequence[int], what: str, value: Array) -> Sequence[Array]:
        return self.meeting.exchange(self.rank, tuple(members), what, value)


def unmet(message: str, help: str) -> MscError:
    """The error of ranks that do not meet."""
    return MscError(Diagnostic("MSC1104", message, help=help))
