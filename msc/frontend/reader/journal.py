"""What reading changes: variables, attributes, containers, tensors; so that a branch can be undone and two be merged.

A scope notes the value that each slot had when it was first written. Nothing is noted for what came into being inside
the scope: nobody outside can see that.
"""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import CellType, MemberDescriptorType
from typing import Any, Protocol

import numpy as np

from msc.frontend.tensor import Tensor


class Unbound:
    """The value of a variable that has none."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


class Slot(Protocol):
    """A place that holds a value. Slots of one place have one `key`; `holder` is what must be older than a scope."""

    @property
    def key(self) -> tuple[object, ...]: ...
    @property
    def holder(self) -> object: ...
    def get(self) -> Any: ...
    def set(self, value: Any) -> None: ...


@dataclass(frozen=True, eq=False)
class Item:
    """A variable in a dict of locals or globals."""

    holder: dict[str, Any]
    name: str

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.holder), self.name)

    def get(self) -> Any:
        return self.holder.get(self.name, UNBOUND)

    def set(self, value: Any) -> None:
        if value is UNBOUND:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = value


@dataclass(frozen=True, eq=False)
class ClosureVariable:
    """A variable that functions share; `name` is what it is called."""

    holder: CellType
    name: str

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.holder),)

    def get(self) -> Any:
        try:
            return self.holder.cell_contents
        except ValueError:
            return UNBOUND

    def set(self, value: Any) -> None:
        if value is UNBOUND:
            if self.get() is not UNBOUND:
                del self.holder.cell_contents
        else:
            self.holder.cell_contents = value


def _is_slot(holder: Any, name: str) -> bool:
    """Whether an object keeps an attribute in a slot of its class."""
    return any(isinstance(vars(kind).get(name), MemberDescriptorType) for kind in type(holder).__mro__)


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute of an object that has a `__dict__`, or a slot."""

    holder: Any
    name: str

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.holder), "." + self.name)

    def get(self) -> Any:
        state = getattr(self.holder, "__dict__", None)
        if state is not None and (self.name in state or not _is_slot(self.holder, self.name)):
            return state.get(self.name, UNBOUND)
        return getattr(self.holder, self.name, UNBOUND)

    def set(self, value: Any) -> None:
        state = getattr(self.holder, "__dict__", None)
        if isinstance(self.holder, type):
            delattr(self.holder, self.name) if value is UNBOUND else setattr(self.holder, self.name, value)
        elif not isinstance(state, dict) or (self.name not in state and _is_slot(self.holder, self.name)):
            if value is not UNBOUND:
                object.__setattr__(self.holder, self.name, value)
            elif self.get() is not UNBOUND:
                object.__delattr__(self.holder, self.name)
        elif value is UNBOUND:
            state.pop(self.name, None)
        else:
            state[self.name] = value


@dataclass(frozen=True, eq=False)
class Content:
    """All that a list, dict, set, deque or array holds."""

    holder: Any

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.holder), "[]")

    def get(self) -> Any:
        return self.holder[:] if isinstance(self.holder, array.array) else self.holder.copy()

    def set(self, value: Any) -> None:
        match self.holder:
            case list() | bytearray() | array.array():
                self.holder[:] = value
            case np.ndarray():
                self.holder[...] = value
            case dict():
                kind: Any = OrderedDict if isinstance(self.holder, OrderedDict) else dict
                kind.clear(self.holder)
                for key in value:
                    kind.__setitem__(self.holder, key, value[key])
            case set() | deque():
                items = list(value)
                self.holder.clear()
                self.holder.update(items) if isinstance(self.holder, set) else self.holder.extend(items)
            case _:
                raise TypeError(type(self.holder).__name__)


@dataclass(frozen=True, eq=False)
class TensorContent:
    """The value that a tensor refers to."""

    holder: Tensor

    @property
    def key(self) -> tuple[object, ...]:
        return (id(self.holder), "=")

    def get(self) -> Any:
        return self.holder.content

    def set(self, value: Any) -> None:
        self.holder.content = value


@dataclass
class Change:
    """A slot that a scope has written, what it held before and what it holds now."""

    slot: Slot
    before: Any
    after: Any = None


@dataclass
class JournalScope:
    """What has been written since the journal's clock stood at `start`."""

    start: int
    changes: dict[tuple[object, ...], Change] = field(default_factory=dict[tuple[object, ...], Change])


_BORN = "_born"

CONTAINERS = (list, dict, set, deque, np.ndarray, bytearray, array.array)


class Journal:
    """The open scopes, and when the objects that reading makes came into being."""

    def __init__(self) -> None:
        self.clock = 0
        self.scopes: list[JournalScope] = []
        self._born: dict[int, tuple[object, int]] = {}

    def begin(self) -> JournalScope:
        self.clock += 1
        scope = JournalScope(self.clock)
        self.scopes.append(scope)
        return scope

    def born(self, item: Any) -> Any:
        """Note that `item` has just been made; returns it."""
        if isinstance(item, Tensor):
            # In the tensor itself: what only the journal refers to would count as still needed.
            item.__dict__[_BORN] = (self, self.clock)
        else:
            self._born[id(item)] = (item, self.clock)
        return item

    def forget(self, item: object) -> None:
        """Nothing refers to `item` any more."""
        self._born.pop(id(item), None)

    def is_own(self, item: object) -> bool:
        """Whether reading made `item`."""
        return self._birth(item) is not None

    def is_newer(self, item: object, scope: JournalScope) -> bool:
        return self.born_since(item, scope.start)

    def born_since(self, item: object, clock: int) -> bool:
        birth = self._birth(item)
        return birth is not None and birth >= clock

    def _birth(self, item: object) -> int | None:
        if isinstance(item, Tensor):
            journal, clock = item.__dict__.get(_BORN, (None, 0))
            return clock if journal is self else None
        known = self._born.get(id(item))
        return None if known is None else known[1]

    def note(self, slot: Slot) -> None:
        """`slot` is about to be written."""
        for scope in reversed(self.scopes):
            if self.is_newer(slot.holder, scope) or slot.key in scope.changes:
                return
            scope.changes[slot.key] = Change(slot, slot.get())

    def note_all(self, items: Iterable[Any], depth: int = 0) -> None:
        """Code that is not read may change `items`, and what they hold."""
        for item in items:
            if isinstance(item, CONTAINERS):
                self.note(Content(item))
            if depth < 3 and isinstance(item, list | tuple | dict) and len(item) < 1000:
                self.note_all(item.values() if isinstance(item, dict) else item, depth + 1)

    def finish(self, scope: JournalScope) -> dict[tuple[object, ...], Change]:
        """What the innermost scope has changed, which is undone."""
        for change in scope.changes.values():
            change.after = change.slot.get()
        self.undo(scope)
        return {k: c for k, c in scope.changes.items() if not unchanged(c.before, c.after)}

    def undo(self, scope: JournalScope) -> None:
        """Close scopes down to `scope`, and give all slots the values they had."""
        while True:
            last = self.scopes.pop()
            for change in reversed(last.changes.values()):
                change.slot.set(change.before)
            if last is scope:
                return

    def keep(self, scope: JournalScope) -> None:
        """Close the innermost scope; what it changed stays."""
        assert self.scopes.pop() is scope


def unchanged(before: Any, after: Any) -> bool:
    """Whether two values of a slot are the same objects."""
    if before is after:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, np.ndarray):
        return before.shape == after.shape and np.array_equal(before, after)
    if isinstance(before, dict):
        return list(before) == list(after) and all(unchanged(before[k], after[k]) for k in before)
    if isinstance(before, list | tuple | deque):
        return _same_items(before, after)
    return isinstance(before, int | float | str | bool | frozenset | set | bytearray | array.array) and before == after


def _same_items(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return len(before) == len(after) and all(map(unchanged, before, after))
