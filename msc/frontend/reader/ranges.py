"""`range` with bounds that the graph computes."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.sequences import as_int64
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.frontend.reader.session import Session


@dataclass(frozen=True)
class RuntimeRange:
    """Numbers from `start` on; `step` is known, since its sign says where the range ends."""

    start: Any
    stop: Any
    step: int

    def known(self) -> range:
        """The range itself, where the graph can be run up to here. Raises Refusal where it cannot."""
        return range(int(self.start), int(self.stop), self.step)

    def __iter__(self) -> Iterator[int]:
        return iter(self.known())

    def __len__(self) -> int:
        return len(self.known())

    def __getitem__(self, index: Any) -> Any:
        return self.known()[index]

    def __contains__(self, value: object) -> bool:
        return value in self.known()

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.known())


def make_range(session: Session, *bounds: Any) -> range | RuntimeRange:
    """`range(stop)` or `range(start, stop, step)`. Raises what `range` raises."""
    if not any(isinstance(b, Tensor | RuntimeNumber) and session.is_symbolic(b) for b in bounds):
        return range(*map(session.real, bounds))
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    step = int(session.real(step))
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    return RuntimeRange(_number(session, start), _number(session, stop), step)


def _number(session: Session, bound: Any) -> Any:
    if not isinstance(bound, Tensor):
        return bound
    if not session.is_symbolic(bound):
        return int(bound)
    if bound.dtype.is_float or bound.size != 1:
        raise TypeError("'Tensor' object cannot be interpreted as an integer")
    return RuntimeNumber(int, as_int64(bound))
