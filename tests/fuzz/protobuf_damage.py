"""Damage to a protobuf message that leaves it one: any field of any message in it may change, go, or come twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

Random = np.random.Generator

_NUMBERS = (0, 1, -1, 2, 3, 7, -8, 255, 1 << 31, 1 << 40, -(1 << 62), (1 << 63) - 1)
_REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, float("inf"), float("nan"))
_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


def damage(message: Message, random: Random, words: Sequence[str]) -> None:
    """Change one field somewhere in the message; new texts are taken from it, or from `words`."""
    messages = list(_messages(message))
    target: Any = _one(random, messages)
    present = [field for field, _ in target.ListFields()]
    every = list(target.DESCRIPTOR.fields)
    field = _one(random, present if present and random.random() < 0.9 else every)
    texts = (*words, *(text for m in messages for text in _texts(m))) if random.random() < 0.5 else words
    if field.is_repeated:
        _change_list(target, field, random, texts)
    elif field.message_type is not None:
        _change_child(target, field, random)
    else:
        setattr(target, field.name, _value(field, getattr(target, field.name), random, texts))


def _one(random: Random, items: Sequence[Any]) -> Any:
    return items[int(random.integers(len(items)))]


def _messages(message: Message) -> Iterator[Message]:
    pending: list[Any] = [message]
    while pending:
        current = pending.pop()
        yield current
        for field, value in current.ListFields():
            if field.message_type is not None:
                pending.extend(value if field.is_repeated else [value])


def _texts(message: Any) -> Iterator[str]:
    for _, value in message.ListFields():
        if isinstance(value, str):
            yield value


def _change_child(target: Any, field: Any, random: Random) -> None:
    if target.HasField(field.name) and random.random() < 0.7:
        target.ClearField(field.name)
    else:
        getattr(target, field.name).SetInParent()


def _change_list(target: Any, field: Any, random: Random, texts: Sequence[str]) -> None:
    """An element goes, comes twice, trades its place with another, or (a plain value) changes."""
    items = getattr(target, field.name)
    if not items:
        _append(items, field, random, texts)
        return
    at, other = int(random.integers(len(items))), int(random.integers(len(items)))
    kept = list(items)
    match int(random.integers(4)):
        case 0:
            del kept[at]
        case 1:
            kept.insert(other, kept[at])
        case 2:
            kept[at], kept[other] = kept[other], kept[at]
        case _:
            if field.message_type is None:
                kept[at] = _value(field, kept[at], random, texts)
    kept = [type(item).FromString(item.SerializeToString()) if isinstance(item, Message) else item for item in kept]
    target.ClearField(field.name)
    items.extend(kept)


def _append(items: Any, field: Any, random: Random, texts: Sequence[str]) -> None:
    if field.message_type is not None:
        items.add()
    else:
        items.append(_value(field, field.default_value or 0, random, texts))


def _value(field: Any, old: Any, random: Random, texts: Sequence[str]) -> Any:
    """Another value of a plain field."""
    if field.enum_type is not None:
        return _one(random, sorted(field.enum_type.values_by_number))
    if field.cpp_type in _BITS:
        low, high = _BITS[field.cpp_type]
        near = int(old) + int(random.integers(-2, 3)) if isinstance(old, int) else 0
        return min(max(_one(random, (*_NUMBERS, near, near)), low), high)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not old
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return _one(random, _REALS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(old if isinstance(old, bytes) else b"", random, texts)
    return _one(random, texts) if texts else ""


def _bytes(old: bytes, random: Random, texts: Sequence[str]) -> bytes:
    if not old or random.random() < 0.3:
        return (_one(random, texts) if texts else "").encode("utf-8", "surrogateescape")
    data = bytearray(old)
    data[int(random.integers(len(data)))] = int(random.integers(256))
    return bytes(data[: int(random.integers(len(data) + 1))] if random.random() < 0.3 else data)
