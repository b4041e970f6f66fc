"""Nested structures of values: taken apart into tensors and numbers that a graph computes, and put together again."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor

Template: TypeAlias = "SameObject | Leaf | Items | Entries | Fields"


@dataclass(frozen=True)
class SameObject:
    """The same object in every call."""

    value: Any


@dataclass(frozen=True)
class Leaf:
    """Something that the graph computes: `make` makes the object of leaf `index`."""

    index: int
    make: Callable[[Any], Any]


@dataclass(frozen=True)
class Items:
    """A list, tuple, set, deque or named tuple, of what `kind` makes of items."""

    kind: Callable[..., Any]
    items: Sequence[Template]


@dataclass(frozen=True)
class Entries:
    """A dict, with the keys in their order; `like` is an empty one."""

    like: Any
    keys: Sequence[Any]
    items: Sequence[Template]


@dataclass(frozen=True)
class Fields:
    """An object with attributes; `like` gives what is not among them."""

    like: Any
    names: Sequence[str]
    items: Sequence[Template]


def fill(template: Template, leaves: Sequence[Any], made: Callable[[Any], Any] = lambda value: value) -> Any:
    """A new structure with these leaves; `made` is called on every part that did not exist before."""
    match template:
        case SameObject():
            return template.value
        case Leaf():
            return made(template.make(leaves[template.index]))
        case Items():
            return made(build(template.kind, [fill(item, leaves, made) for item in template.items]))
        case Entries():
            filled = copy.copy(template.like)
            for key, item in zip(template.keys, template.items, strict=True):
                filled[key] = fill(item, leaves, made)
            return made(filled)
        case Fields():
            new = copy.copy(template.like)
            for name, item in zip(template.names, template.items, strict=True):
                object.__setattr__(new, name, fill(item, leaves, made))
            return made(new)


def build(kind: Callable[..., Any], items: Sequence[Any]) -> Any:
    """A list, tuple, set or named tuple of `items`."""
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def children(value: object) -> Sequence[Any] | None:
    """The parts of a structure; None for what is none. Objects of users are structures if they are dataclasses."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple) or type(value) in (set, frozenset, deque):
        return [*value]  # pyright: ignore[reportGeneralTypeIssues]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in dataclasses.fields(value)]
    return None


def node(value: Any, items: Sequence[Template]) -> Template:
    """The template of a structure with these parts, in the order of `children`."""
    if isinstance(value, dict):
        like = value.copy()
        like.clear()
        return Entries(like, list(value), items)
    if isinstance(value, list | tuple) or type(value) in (set, frozenset):
        return Items(type(value), items)
    if isinstance(value, deque):
        return Items(lambda made: deque(made, value.maxlen), items)
    return Fields(value, [f.name for f in dataclasses.fields(value)], items)


def same_form(a: Any, b: Any) -> bool:
    """Whether two structures differ in nothing but their parts."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b)
    if isinstance(a, set | frozenset):
        return a == b
    parts = children(a), children(b)
    return parts[0] is not None and parts[1] is not None and len(parts[0]) == len(parts[1])


class Flattening:
    """Takes structures apart. `leaf` returns what a part becomes in the graph, or None to keep it as it is.

    An object that occurs twice is one leaf; with `each_time` it is two.
    """

    def __init__(
        self, leaf: Callable[[Any], tuple[Any, Callable[[Any], Any]] | None], *, each_time: bool = False
    ) -> None:
        self._leaf, self._each_time = leaf, each_time
        self.leaves: list[Any] = []
        self.is_object: Callable[[object], bool] = lambda _: False
        """Whether an object, of whatever class, is a structure of its attributes."""
        self._places: dict[int, int] = {}
        self._seen: list[object] = []

    def template(self, value: Any) -> Template:
        found = self._leaf(value)
        if found is not None:
            return self._placed(value, *found)
        parts = children(value)
        if parts is None and self.is_object(value) and type(getattr(value, "__dict__", None)) is dict:
            return self._object(value)
        if not parts:
            return SameObject(value) if parts is None else node(value, [])
        items = [self.template(part) for part in parts]
        if isinstance(value, tuple) and all(isinstance(i, SameObject) for i in items):
            return SameObject(value)
        return node(value, items)

    def _object(self, value: Any) -> Template:
        names = list(vars(value))
        if isinstance(value, type) or callable(value):
            return SameObject(value)
        return Fields(value, names, [self.template(vars(value)[n]) for n in names])

    def _placed(self, value: Any, graph_value: Any, make: Callable[[Any], Any]) -> Leaf:
        if self._each_time or id(value) not in self._places:
            self._places[id(value)] = len(self.leaves)
            self._seen.append(value)
            self.leaves.append(graph_value)
        return Leaf(self._places[id(value)], make)


def is_tensor(value: object) -> bool:
    """A tensor that is no parameter: what the graph computes, not what it names."""
    return isinstance(value, Tensor) and not isinstance(value, Parameter)
