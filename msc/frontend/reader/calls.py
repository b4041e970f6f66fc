"""Calls: user functions are read, library code runs as it is, with tensors of the graph."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import functools
import inspect
import operator
import types
from collections import deque
from typing import TYPE_CHECKING, Any

from msc.frontend.reader import attributes, unread
from msc.frontend.reader.frames import EXPRESSIONS, STATEMENTS, Frame, reads
from msc.frontend.reader.functions import body_of, bound_arguments, read_function
from msc.frontend.reader.guards import MISSING, in_class
from msc.frontend.reader.journal import CONTAINERS, Content
from msc.frontend.reader.libraries import is_library_code
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.sequences import drawn
from msc.frontend.reader.signals import Recursion, Refusal
from msc.frontend.reader.source import CodeSource, source_of
from msc.frontend.reader.special import SPECIAL
from msc.frontend.reader.tail_calls import as_loop

if TYPE_CHECKING:
    from msc.frontend.reader.session import Session

CALL = "__call__"

LOADS = (operator.getitem,)
"""Operators that give what was there before."""

_OWN_LOOK = {"exec", "eval", "locals", "vars", "dir", "breakpoint"}
"""Builtins that look at the frame that calls them, which must then be a real one."""

_NOT_READ = (
    *(ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef),
    *((ast.TryStar,) if hasattr(ast, "TryStar") else ()),
)


def readable(code: types.CodeType) -> CodeSource | None:
    """The source of a function that is read; None for one that is run as it is."""
    source = None if is_library_code(code) else source_of(code)
    return source if source is not None and _is_readable(source.node) else None


@functools.lru_cache(maxsize=4096)
def _is_readable(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.Lambda) and all(map(_is_read, _inside(node)))


def _inside(node: ast.AST) -> list[ast.AST]:
    """The nodes of a function, without those of functions in it."""
    found: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        child = waiting.pop()
        found.append(child)
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(child)
    return found


def _is_read(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _OWN_LOOK:
        return False
    if isinstance(node, ast.comprehension):
        return not node.is_async
    if isinstance(node, ast.expr):
        return type(node) in EXPRESSIONS or isinstance(node, ast.Starred)
    return type(node) in STATEMENTS if isinstance(node, ast.stmt) else not isinstance(node, _NOT_READ)


@reads(ast.Call)
def _call_(frame: Frame, node: ast.Call) -> Any:
    function = frame.evaluate(node.func)
    args: list[Any] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            args.extend(frame.session.iterate(frame.evaluate(argument.value)))
        else:
            args.append(frame.evaluate(argument))
    kwargs: dict[str, Any] = {}
    for keyword in node.keywords:
        _add_keyword(kwargs, keyword.arg, frame.evaluate(keyword.value), function)
    frame.node = node
    return call(frame, function, tuple(args), kwargs)


def _add_keyword(kwargs: dict[str, Any], name: str | None, value: Any, function: Any) -> None:
    for key, item in [(name, value)] if name is not None else list(value.items()):
        if key in kwargs:
            label = getattr(function, "__qualname__", str(function))
            raise TypeError(f"{label}() got multiple values for keyword argument '{key}'")
        kwargs[key] = item


def call(frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a call."""
    special = SPECIAL.get(function) if isinstance(function, _HASHABLE) else None
    if special is not None:
        return special(frame, *args, **kwargs)
    match function:
        case types.FunctionType():
            source = readable(function.__code__)
            return (
                native(frame, function, args, kwargs) if source is None else read(frame, function, source, args, kwargs)
            )
        case types.MethodType():
            return call(frame, function.__func__, (function.__self__, *args), kwargs)
        case functools.partial():
            if not frame.session.journal.is_own(function):
                frame.session.guards.partial(function)
            return call(frame, function.func, (*function.args, *args), {**function.keywords, **kwargs})
        case type():
            return _instance(frame, function, args, kwargs)
        case _:
            return _call_object(frame, function, args, kwargs)


_HASHABLE = (types.FunctionType, types.BuiltinFunctionType, type)


def _call_object(frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of what is no function: an object that was compiled on its own is read as a part of this graph."""
    wrapped = getattr(function, "__msc_function__", None)
    if wrapped is not None:
        return call(frame, wrapped, args, kwargs)
    method = getattr(type(function), CALL, None)
    if hasattr(type(function), "run_construct"):
        attributes.of_class(frame.session, type(function), CALL, method)
    if isinstance(method, types.FunctionType) and readable(method.__code__) is not None:
        attributes.of_class(frame.session, type(function), CALL, method)
        frame.session.guards.class_of(function)
        return call(frame, method, (function, *args), kwargs)
    return native(frame, function, args, kwargs)


def enter(session: Session, function: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """A call that code of the library makes, or that is the one to be read."""
    if session.frames:
        return call(session.frames[-1], function, args, kwargs)
    match function:
        case types.FunctionType():
            source = readable(function.__code__)
            if source is not None:
                return read_in(session, function, source, args, kwargs)
        case types.MethodType():
            return enter(session, function.__func__, (function.__self__, *args), kwargs)
        case functools.partial():
            session.guards.partial(function)
            return enter(session, function.func, (*function.args, *args), {**function.keywords, **kwargs})
        case _ if unread.is_user_function(in_class(type(function), CALL)):
            attributes.of_class(session, type(function), CALL, in_class(type(function), CALL))
            session.guards.class_of(function)
            return enter(session, type(function).__call__, (function, *args), kwargs)
        case _:
            pass
    unread.note_call(session, function, [*args, *kwargs.values()])
    return function(*args, **kwargs)


def _instance(frame: Frame, kind: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An instance of a class; its `__init__` is read if it is user code."""
    initialise = kind.__init__
    plain = type(kind).__call__ is type.__call__ and kind.__new__ is object.__new__
    attributes.of_class(frame.session, kind, "__init__", in_class(kind, "__init__"))
    attributes.of_class(frame.session, kind, "__new__", in_class(kind, "__new__"))
    if plain and isinstance(initialise, types.FunctionType) and readable(initialise.__code__) is not None:
        if inspect.isabstract(kind):
            return kind(*args, **kwargs)
        made = frame.session.journal.born(object.__new__(kind))
        call(frame, initialise, (made, *args), kwargs)
        return made
    made = native(frame, kind, args, kwargs)
    return frame.session.journal.born(made) if plain or kind in (list, dict, set, deque) else made


def read(
    frame: Frame | None, function: types.FunctionType, source: CodeSource, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """Read a user function with these arguments."""
    assert frame is not None
    return read_in(frame.session, function, source, args, kwargs)


def read_in(
    session: Session, function: types.FunctionType, source: CodeSource, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """The result of a user function. One that calls itself where a tensor decides is read as a loop if it can be."""
    loop = as_loop(source.node)
    _refuse_recursion(session, source, is_loop=loop is not None)
    if loop is None:
        return _run(session, function, source, args, kwargs, body_of(source.node))
    scope = session.journal.begin()
    try:
        result = _run(session, function, source, args, kwargs, body_of(source.node))
    except Recursion as recursion:
        session.journal.undo(scope)
        if recursion.function is not source.code:
            raise
        return _run(session, function, source, args, kwargs, loop)
    except BaseException:
        if scope in session.journal.scopes:
            session.journal.scopes.remove(scope)
        raise
    session.journal.keep(scope)
    return result


def _refuse_recursion(session: Session, source: CodeSource, *, is_loop: bool) -> None:
    """Raises Recursion if a tensor decides on this call of a function that is being read already."""
    depth = session.graph.depth
    if any(f.code is source.code and f.depth < depth for f in session.frames):
        recursion = Recursion(source.code)
        raise recursion if is_loop else Refusal(recursion.code, recursion.message, recursion.help)


def _run(
    session: Session,
    function: types.FunctionType,
    source: CodeSource,
    args: tuple[Any, ...],
    kwargs: Any,
    body: list[ast.stmt] | ast.expr,
) -> Any:
    bound = bound_arguments(function, source, args, kwargs)
    node = source.node
    assert isinstance(node, ast.FunctionDef | ast.Lambda)
    if node.args.vararg is not None or node.args.kwarg is not None:
        for value in bound.values():
            if isinstance(value, dict):
                session.journal.born(value)
    if not session.journal.is_own(function):
        session.guards.function(function)
    cells = dict(zip(source.code.co_freevars, function.__closure__ or (), strict=True))
    frame = Frame(session, source, function.__globals__, cells, bound, function)
    with session.entered(frame):
        result = read_function(frame, body)
    session.journal.forget(frame.locals)
    return result


# Code that is not read.


def native(frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call library code: what it may change is noted, what it looks at is guarded."""
    session = frame.session
    receiver = getattr(function, "__self__", None)
    args = tuple(drawn(session, value) for value in args)
    given = [receiver, *args, *kwargs.values()]
    for value in given:
        session.look_into(value)
        session.consume(value)
    session.journal.note_all(given)
    unread.note_call(session, function, given if receiver is not None else given[1:])
    result = session.made(session.library(function, args, kwargs), given)
    _keyed_by_numbers(session, receiver)
    return _given_back(session, function, receiver, given, _keyed_by_numbers(session, result))


def _keyed_by_numbers(session: Session, container: Any) -> Any:
    """A dict or set with the numbers themselves as keys: hashing has asked for those that the graph computes."""
    if not isinstance(container, dict | set | frozenset) or not any(isinstance(k, RuntimeNumber) for k in container):
        return container
    keys = list(map(session.real, container))
    if isinstance(container, frozenset):
        return frozenset(keys)
    made = dict(zip(keys, container.values(), strict=True)) if isinstance(container, dict) else set(keys)
    Content(container).set(made)
    return container


def _given_back(session: Session, function: Any, receiver: Any, given: list[Any], result: Any) -> Any:
    """Note where a result comes from: an iterator or a copy is new."""
    if any(result is value for value in given) or session.journal.is_own(result):
        return result
    if hasattr(type(result), "__next__"):
        session.iterates(result, given)
        return session.journal.born(result)
    if isinstance(result, unread.VIEWS):
        return session.journal.born(result)
    takes_out = function is next or (isinstance(receiver, CONTAINERS) and getattr(function, "__name__", "") != "copy")
    if isinstance(result, CONTAINERS) and not takes_out and not session.is_outside(result):
        return session.journal.born(result)
    if isinstance(receiver, CONTAINERS) and session.is_outside(receiver):
        session.note_outside(result)
    return result


def truth_of(session: Session, value: Any) -> bool:
    """Whether a Python value counts as true; a method of user code that says so is read."""
    session.look_into(value)
    kind = type(value)
    if not unread.is_user_class(kind):
        if not isinstance(value, CONTAINERS) and unread.has_own(kind, "__bool__", "__len__"):
            unread.note_looking(session, (value,), "a condition", takes_callables=True, shallow=True)
        return bool(value)
    for name in ("__bool__", "__len__"):
        result = session.by_method(name, value)
        if result is not MISSING:
            return bool(session.real(result))
        attributes.of_class(session, kind, name, in_class(kind, name))
    session.guards.class_of(value)
    return bool(value)
