"""What tells compiled graphs cheaply that something may have changed: a count for what msc owns, and shared memory."""

from __future__ import annotations

import weakref
from abc import ABCMeta
from typing import Any, ClassVar, Self, cast

import numpy as np


class Changes:
    """`count` grows whenever an attribute of a Cell or of its class, or the value of a Parameter, is replaced."""

    count: ClassVar[int] = 0


class CountedDict(dict[str, Any]):
    """What a Cell holds: whoever writes it, is counted."""

    def __setitem__(self, key: str, value: Any) -> None:
        Changes.count += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        Changes.count += 1
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def update(self, *args: Any, **items: Any) -> None:
        Changes.count += 1
        super().update(*args, **items)

    def pop(self, key: str, *default: Any) -> Any:
        Changes.count += 1
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        Changes.count += 1
        return super().popitem()

    def setdefault(self, key: str, default: Any = None) -> Any:
        Changes.count += 1
        return super().setdefault(key, default)

    def clear(self) -> None:
        Changes.count += 1
        super().clear()


class CountedType(ABCMeta):
    """The class of Cell classes: a method or attribute of one that is replaced is counted."""

    def __setattr__(cls, name: str, value: Any) -> None:
        Changes.count += 1
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        Changes.count += 1
        super().__delattr__(name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass)


class SharedMemory:
    """The memory of tensors that NumPy arrays outside share, which may therefore be written at any time."""

    _roots: ClassVar[dict[int, weakref.ref[Any]]] = {}

    @classmethod
    def add(cls, array: Any) -> None:
        """An array that shares this one's memory goes to the user, or comes from him."""
        root = _root(array)
        key = id(root)
        if key not in cls._roots:
            cls._roots[key] = weakref.ref(root, lambda _: cls._roots.pop(key, None))

    @classmethod
    def has(cls, array: Any) -> bool:
        return id(_root(array)) in cls._roots


def _root(array: Any) -> Any:
    """The array that owns the memory, or the outermost one around what does."""
    while isinstance(cast(Any, getattr(array, "base", None)), np.ndarray):
        array = array.base
    return array
