"""Functions and classes that are defined while a program is read, comprehensions, and what calls of functions do."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeAlias

from msc.frontend.errors import Readers, UserPlace
from msc.frontend.reader.assignments import assign
from msc.frontend.reader.expressions import condition_of
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.outcomes import RETURN
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.source import CodeSource, source_of
from msc.frontend.reader.statements import block


def child_code(frame: Frame, node: ast.AST) -> types.CodeType:
    """The code object of a scope inside the frame's function."""
    code = frame.source.children.get(node)
    if code is None:
        raise Refusal("MSC0847", f"the code of this {type(node).__name__} cannot be found in its function")
    return code


def closure(frame: Frame, code: types.CodeType) -> tuple[types.CellType, ...]:
    """The cells of the variables that a function inside shares with the frame."""
    return tuple(frame.cells[name] for name in code.co_freevars)


def make_function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> types.FunctionType:
    """A real function: what Python would have made, so that code that is not read can call it as well."""
    arguments = node.args
    defaults = tuple(frame.evaluate(d) for d in arguments.defaults)
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    keywords = {a.arg: frame.evaluate(d) for a, d in pairs if d is not None}
    code = child_code(frame, node)
    function = types.FunctionType(code, frame.globals, code.co_name, defaults or None, closure(frame, code))
    function.__kwdefaults__ = keywords or None
    function.__module__ = frame.globals.get("__name__", "__main__")
    return frame.session.journal.born(function)


@reads(ast.Lambda)
def _lambda_(frame: Frame, node: ast.Lambda) -> Any:
    return make_function(frame, node)


@reads(ast.FunctionDef, ast.AsyncFunctionDef)
def _definition(frame: Frame, node: ast.FunctionDef) -> None:
    decorators = [frame.evaluate(d) for d in node.decorator_list]
    function: Any = make_function(frame, node)
    function.__annotations__ = _annotations(frame, node, function.__code__)
    function.__doc__ = ast.get_docstring(node, clean=False)
    frame.node = node
    for decorator in reversed(decorators):
        function = frame.session.call(frame, decorator, (function,), {})
    frame.store(node.name, function)


def _annotations(frame: Frame, node: ast.FunctionDef, code: types.CodeType) -> dict[str, Any]:
    """What the annotations of a function are, in the order in which Python evaluates them; texts if it keeps those."""
    given = node.args
    arguments = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    places = [(a.arg, a.annotation) for a in arguments if a is not None] + [("return", node.returns)]
    is_text = code.co_flags & annotations.compiler_flag
    return {
        frame.mangled(name): ast.unparse(annotation) if is_text else frame.evaluate(annotation)
        for name, annotation in places
        if annotation is not None
    }


@reads(ast.ClassDef)
def _class_(frame: Frame, node: ast.ClassDef) -> None:
    """A class: its body is read, and Python makes the class of what the body has defined."""
    decorators = [frame.evaluate(d) for d in node.decorator_list]
    bases = types.resolve_bases(tuple(frame.evaluate(b) for b in node.bases))
    keywords = {k.arg: frame.evaluate(k.value) for k in node.keywords if k.arg is not None}
    meta, namespace, keywords = types.prepare_class(node.name, bases, keywords)
    frame.node = node
    code = child_code(frame, node)
    body = namespace
    body |= {"__module__": frame.globals.get("__name__", "__main__"), "__qualname__": code.co_qualname}
    cells = dict(zip(code.co_freevars, closure(frame, code), strict=True))
    inner = Frame(frame.session, _source(code), frame.globals, cells, body)
    with frame.session.entered(inner):
        block(inner, node.body)
    if "__class__" in inner.cells:
        body["__classcell__"] = inner.cells["__class__"]
    made: Any = frame.session.journal.born(meta(node.name, bases, body, **keywords))
    for decorator in reversed(decorators):
        made = frame.session.call(frame, decorator, (made,), {})
    frame.store(node.name, made)


def _source(code: types.CodeType) -> CodeSource:
    source = source_of(code)
    assert source is not None
    return source


# Comprehensions.

Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@reads(ast.ListComp, ast.SetComp, ast.DictComp)
def _comprehension(frame: Frame, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Any:
    first = frame.evaluate(node.generators[0].iter)
    inner = _inside(frame, node)
    found: Any = {} if isinstance(node, ast.DictComp) else []
    with frame.session.entered(inner):
        for _ in _places(inner, node.generators, 0, first):
            if isinstance(node, ast.DictComp):
                key = inner.session.real(inner.evaluate(node.key))
                found[key] = inner.evaluate(node.value)
            else:
                found.append(inner.evaluate(node.elt))
    if isinstance(node, ast.SetComp):
        found = set(map(frame.session.real, found))
    return frame.session.journal.born(found)


@reads(ast.GeneratorExp)
def _generator(frame: Frame, node: ast.GeneratorExp) -> Iterator[Any]:
    first = frame.evaluate(node.generators[0].iter)
    return frame.session.becomes_sequence(_generated(_inside(frame, node), node, first), tuple)


def _generated(inner: Frame, node: ast.GeneratorExp, first: Any) -> Iterator[Any]:
    places = _places(inner, node.generators, 0, first)
    while True:
        with inner.session.entered(inner):
            if next(places, _END) is _END:
                return
            item = inner.evaluate(node.elt)
        yield item


_END = object()


def _inside(frame: Frame, node: Comprehension) -> Frame:
    code = child_code(frame, node)
    cells = dict(zip(code.co_freevars, closure(frame, code), strict=True))
    return Frame(frame.session, _source(code), frame.globals, cells, {})


def _places(inner: Frame, generators: list[ast.comprehension], index: int, items: Any) -> Iterator[None]:
    """Once for each item of a comprehension, with its variables assigned."""
    generator = generators[index]
    for item in inner.session.iterate(items):
        assign(inner, generator.target, item)
        if not all(_holds(inner, test) for test in generator.ifs):
            continue
        if index + 1 == len(generators):
            yield
        else:
            yield from _places(inner, generators, index + 1, inner.evaluate(generators[index + 1].iter))


def _holds(inner: Frame, test: ast.expr) -> bool:
    return inner.session.decide(condition_of(inner, test))


# Calls of user functions.

_BINDERS: dict[types.CodeType, types.CodeType] = {}


def bound_arguments(
    function: types.FunctionType, source: CodeSource, args: tuple[Any, ...], kwargs: Any
) -> dict[str, Any]:
    """The parameters of a function by name. Python binds them, so its TypeErrors are Python's own."""
    code = _BINDERS.get(function.__code__)
    if code is None:
        code = _BINDERS[function.__code__] = _binder(source)
    binder = types.FunctionType(code, {"locals": locals}, function.__name__, function.__defaults__)
    binder.__kwdefaults__ = function.__kwdefaults__
    binder.__qualname__ = function.__qualname__
    return binder(*args, **kwargs)


def _binder(source: CodeSource) -> types.CodeType:
    """The code of a function with the same parameters that returns them."""
    assert isinstance(source.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    given = source.node.args

    def plain(arguments: list[ast.arg]) -> list[ast.arg]:
        return [ast.arg(a.arg) for a in arguments]

    zero = ast.Constant(0)
    arguments = ast.arguments(
        plain(given.posonlyargs),
        plain(given.args),
        None if given.vararg is None else ast.arg(given.vararg.arg),
        plain(given.kwonlyargs),
        [None if d is None else zero for d in given.kw_defaults],
        None if given.kwarg is None else ast.arg(given.kwarg.arg),
        [zero for _ in given.defaults],
    )
    call = ast.Call(ast.Name("locals", ast.Load()), [], [])
    expression = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, call)))
    compiled = compile(expression, "<arguments>", "eval")
    return next(c for c in compiled.co_consts if isinstance(c, types.CodeType))


def read_function(frame: Frame, body: list[ast.stmt] | ast.expr) -> Any:
    """What the function of a frame returns."""
    if isinstance(body, ast.expr):
        return frame.evaluate(body)
    outcome = block(frame, body)
    assert outcome is None or outcome.is_code(RETURN)
    return None if outcome is None else outcome.value


def _reading_place(python_frame: FrameType) -> UserPlace:
    frame: Frame = python_frame.f_locals["frame"]
    return UserPlace(frame.place(), frame.text(), frame.length(), frame.name)


Readers.codes[read_function.__code__] = _reading_place

_BODIES: dict[ast.AST, list[ast.stmt]] = {}


def body_of(node: Any) -> list[ast.stmt] | ast.expr:
    """The body of a function or lambda, with the `return None` at its end that Python does not ask people to write."""
    if isinstance(node, ast.Lambda):
        return node.body
    if node not in _BODIES:
        last = node.body[-1]
        implied = ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), last)), last)
        _BODIES[node] = [*node.body, implied]
    return _BODIES[node]
