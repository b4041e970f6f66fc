"""Builtins whose arguments may be values of the graph, or that look at who calls them."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.reader import unread
from msc.frontend.reader.branches import choose
from msc.frontend.reader.expressions import aligned
from msc.frontend.reader.frames import Frame
from msc.frontend.reader.guards import MISSING
from msc.frontend.reader.numbers import DTYPES, RuntimeNumber, as_kind
from msc.frontend.reader.ranges import make_range
from msc.frontend.reader.sequences import as_sequence
from msc.frontend.reader.structures import Flattening, SameObject, fill
from msc.frontend.tensor import Tensor

_ABSENT = object()


def _isinstance(frame: Frame, value: Any, kinds: Any) -> bool:
    _note_class(frame, value)
    for kind in _each_kind(kinds):
        if type(kind) is not type and unread.is_user_class(kind) and not isinstance(value, RuntimeNumber):
            frame.session.guards.is_instance(value, kind)
    return frame.session.is_instance(value, kinds)


def _each_kind(kinds: Any) -> Iterator[Any]:
    """The classes of a tuple, or of a union `A | B`, in which there may be others."""
    if isinstance(kinds, tuple | UnionType):
        for kind in kinds if isinstance(kinds, tuple) else kinds.__args__:
            yield from _each_kind(kind)
    else:
        yield kinds


def _note_class(frame: Frame, value: Any) -> None:
    """The class of an object of a user matters."""
    if unread.is_user_class(type(value)) and not frame.session.journal.is_own(value):
        frame.session.guards.class_of(value)


def _type(frame: Frame, *args: Any, **kwargs: Any) -> Any:
    _note_class(frame, args[0])
    if len(args) == 1 and isinstance(args[0], RuntimeNumber):
        return args[0].kind
    return type(*args, **kwargs)


def _len(frame: Frame, container: Any) -> int:
    session = frame.session
    container = as_sequence(session, container)
    session.look_into(container)
    if unread.is_user_class(type(container)):
        length = session.by_method("__len__", container)
        if length is not MISSING:
            return length
    unread.note_looking(session, (container,), "len()", takes_callables=True, shallow=True)
    return len(container)


def _range(frame: Frame, *bounds: Any) -> Any:
    return make_range(frame.session, *bounds)


def _print(frame: Frame, *args: Any, **kwargs: Any) -> None:
    """Printed when the graph has run, and then again in every call."""
    shown = tuple(_as_it_is(frame, a) for a in args)
    frame.session.defer(print, shown, kwargs, "print()")


def _as_it_is(frame: Frame, value: Any) -> Any:
    """What is printed of a value that may change before the graph has run: text, unless tensors are in it."""
    flat = Flattening(lambda v: _snapshot(frame, v))
    template = flat.template(value)
    if isinstance(template, SameObject) or not flat.leaves:
        return str(value)
    return fill(template, flat.leaves)


def _snapshot(frame: Frame, value: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    if not frame.session.is_symbolic(value):
        return None
    if isinstance(value, RuntimeNumber):
        return value, lambda v: v
    return Tensor.of(value.content), lambda v: v


def _super(frame: Frame, *args: Any) -> Any:
    if args:
        return super(args[0], *args[1:])
    if "__class__" not in frame.cells:
        raise RuntimeError("super(): __class__ cell not found")
    first = frame.code.co_varnames[0]
    return super(frame.cells["__class__"].cell_contents, frame.load(first))


def _globals(frame: Frame) -> dict[str, Any]:
    return frame.globals


def _converted(kind: type) -> Callable[..., Any]:
    """`int`, `float` or `bool` of a number or a tensor of one element: a runtime number."""

    def convert(frame: Frame, *args: Any, **kwargs: Any) -> Any:
        value = args[0] if len(args) == 1 and not kwargs else None
        session = frame.session
        if not session.is_symbolic(value):
            return _plainly(frame, kind, args, kwargs)
        if kind is bool:
            decided = session.truth(value)
            return RuntimeNumber(bool, decided) if isinstance(decided, Tensor) else decided
        if isinstance(value, Tensor) and value.size != 1:
            return kind(value)
        tensor = value.tensor if isinstance(value, RuntimeNumber) else apply("reshape", value, shape=())
        if kind is int and tensor.dtype.category == dtypes.FLOAT:
            tensor = apply("trunc", tensor)
        return RuntimeNumber(kind, apply("cast", tensor, dtype=DTYPES[kind]))

    return convert


def _plainly(frame: Frame, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a class makes of values that the graph does not compute; a method of user code that says so is read."""
    session = frame.session
    if kind is bool and len(args) == 1:
        return session.truth(args[0])
    value = session.by_method(f"__{kind.__name__}__", args[0]) if len(args) == 1 else MISSING
    if value is not MISSING:
        return value
    unread.note_looking(session, args, f"{kind.__name__}()")
    return kind(*(session.real(a) for a in args), **kwargs)


def _extreme(native: Callable[..., Any], is_better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def find(frame: Frame, *args: Any, **kwargs: Any) -> Any:
        session = frame.session
        items = list(session.iterate(args[0])) if len(args) == 1 else list(args)
        if kwargs or not any(map(session.is_symbolic, items)):
            values = [*items, *kwargs.values()]
            unread.note_looking(session, values, native.__name__)
            return native(*args, **kwargs) if len(args) != 1 else native(items, **kwargs)
        best = items[0]
        for item in items[1:]:
            a, b = aligned(item, best)
            best = choose(frame, is_better(a, b), lambda i=item: i, lambda b=best: b)
        return best

    return find


def _sum(frame: Frame, items: Iterable[Any], start: Any = 0) -> Any:
    total = start
    for item in frame.session.iterate(items):
        a, b = aligned(total, item)
        total = a + b
    return total


def _quantifier(native: Callable[[Iterable[Any]], bool], combined: str, stops: bool) -> Callable[..., Any]:
    def decide(frame: Frame, items: Iterable[Any]) -> Any:
        session = frame.session
        found: Tensor | None = None
        for item in session.iterate(items):
            truth = session.truth(item)
            if isinstance(truth, Tensor):
                found = truth if found is None else apply(combined, found, truth)
            elif truth is stops:
                return stops
        return (not stops) if found is None else RuntimeNumber(bool, found)

    return decide


def _map(frame: Frame, function: Any, *iterables: Any) -> Iterator[Any]:
    session = frame.session
    columns = [session.iterate(i) for i in iterables]
    mapped = (session.call(frame, function, args, {}) for args in zip(*columns, strict=False))
    return session.becomes_sequence(mapped, tuple)


def _filter(frame: Frame, function: Any, iterable: Any) -> Iterator[Any]:
    session = frame.session

    def keeps(item: Any) -> bool:
        value = item if function is None else session.call(frame, function, (item,), {})
        return session.decide(session.truth(value))

    return session.becomes_sequence((item for item in session.iterate(iterable) if keeps(item)), list)


def _reduce(frame: Frame, function: Any, iterable: Any, initial: Any = _ABSENT) -> Any:
    session = frame.session
    items = session.iterate(iterable)
    if initial is _ABSENT:
        initial = next(items, _ABSENT)
        if initial is _ABSENT:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in items:
        initial = session.call(frame, function, (initial, item), {})
    return initial


def _getattr(frame: Frame, owner: Any, name: str, default: Any = _ABSENT) -> Any:
    try:
        return frame.session.attribute(frame, owner, name)
    except AttributeError:
        if default is _ABSENT:
            raise
        return default


def _hasattr(frame: Frame, owner: Any, name: str) -> bool:
    return _getattr(frame, owner, name, _ABSENT_TOO) is not _ABSENT_TOO


_ABSENT_TOO = object()


def _setattr(frame: Frame, owner: Any, name: str, value: Any) -> None:
    frame.session.set_attribute(frame, owner, name, value)


def _delattr(frame: Frame, owner: Any, name: str) -> None:
    frame.session.delete_attribute(owner, name)


def _pow(frame: Frame, base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        return pow(*map(frame.session.real, (base, exponent, modulus)))
    a, b = aligned(base, exponent)
    return a**b


def _divmod(frame: Frame, a: Any, b: Any) -> tuple[Any, Any]:
    pair: Any = aligned(a, b)
    if isinstance(pair[0], Tensor | RuntimeNumber) or isinstance(pair[1], Tensor):
        return pair[0] // pair[1], pair[0] % pair[1]
    return divmod(*pair)


def _item(frame: Frame, tensor: Any, *index: Any) -> Any:
    """`tensor.item()`: a runtime number."""
    if index or not frame.session.is_symbolic(tensor) or tensor.size != 1:
        return _ITEM(tensor, *map(frame.session.real, index))
    kind = (bool, int, float)[tensor.dtype.category]
    return RuntimeNumber(kind, as_kind(RuntimeNumber(kind, _wide(tensor, kind)), kind))


def _wide(tensor: Tensor, kind: type) -> Tensor:
    return apply("cast", apply("reshape", tensor, shape=()), dtype=DTYPES[kind])


_ITEM = Tensor.item

SPECIAL: dict[Any, Callable[..., Any]] = {
    isinstance: _isinstance,
    type: _type,
    len: _len,
    range: _range,
    print: _print,
    super: _super,
    globals: _globals,
    int: _converted(int),
    float: _converted(float),
    bool: _converted(bool),
    min: _extreme(min, lambda a, b: a < b),
    max: _extreme(max, lambda a, b: a > b),
    sum: _sum,
    any: _quantifier(any, "logical_or", True),
    all: _quantifier(all, "logical_and", False),
    map: _map,
    filter: _filter,
    functools.reduce: _reduce,
    getattr: _getattr,
    hasattr: _hasattr,
    setattr: _setattr,
    delattr: _delattr,
    pow: _pow,
    divmod: _divmod,
    Tensor.item: _item,
}
"""What is called instead, with the frame in front."""
