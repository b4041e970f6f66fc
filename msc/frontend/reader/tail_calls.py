"""A function whose calls of itself are all in tail position, as a loop that gives its parameters new values."""

from __future__ import annotations

import ast
import copy
from functools import lru_cache
from typing import Any

from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.functions import body_of, bound_arguments
from msc.frontend.reader.outcomes import CONTINUE, RETURN, Outcome


class TailCall(ast.stmt):
    """`return f(...)` in `f`: the parameters get new values, and the body begins again."""

    _fields = ("call",)
    call: ast.Call


@lru_cache(maxsize=4096)
def as_loop(node: ast.AST) -> list[ast.stmt] | None:
    """The body of a function as a loop; None if it does not call itself, or not only in tail position."""
    if not isinstance(node, ast.FunctionDef):
        return None
    recursive = sum(_is_recursive(n, node.name) for n in ast.walk(node))
    if not recursive:
        return None
    body = body_of(node)
    assert isinstance(body, list)
    turned = _Turning(node.name)
    statements = [turned.statement(s) for s in body]
    if turned.count != recursive:
        return None
    loop = ast.copy_location(ast.While(ast.copy_location(ast.Constant(True), node), statements, []), node)
    return [loop]


def _is_recursive(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (isinstance(function, ast.Name) and function.id == name) or (
        isinstance(function, ast.Attribute) and function.attr == name
    )


class _Turning:
    """Replaces returned calls; `count` is how many."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.count = 0

    def statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.Return(value=ast.expr() as value):
                return self._returned(node, value)
            case ast.If():
                turned = copy.copy(node)
                turned.body = [self.statement(s) for s in node.body]
                turned.orelse = [self.statement(s) for s in node.orelse]
                return turned
            case _:
                return node

    def _returned(self, node: ast.stmt, value: ast.expr) -> ast.stmt:
        if isinstance(value, ast.Call) and _is_recursive(value, self._name):
            self.count += 1
            made = TailCall()
            made.call = value
            return ast.copy_location(made, node)
        if isinstance(value, ast.IfExp) and any(_is_recursive(n, self._name) for n in ast.walk(value)):
            branches = [[self._returned(node, v)] for v in (value.body, value.orelse)]
            return ast.copy_location(ast.If(value.test, *branches), node)
        return ast.copy_location(ast.Return(value), node)


@reads(TailCall)
def _tail_call(frame: Frame, node: TailCall) -> Outcome:
    from msc.frontend.reader.calls import call

    function = frame.evaluate(node.call.func)
    args: tuple[Any, ...] = ()
    for argument in node.call.args:
        if isinstance(argument, ast.Starred):
            args += tuple(frame.session.iterate(frame.evaluate(argument.value)))
        else:
            args += (frame.evaluate(argument),)
    kwargs = {k.arg: frame.evaluate(k.value) for k in node.call.keywords if k.arg is not None}
    plain = getattr(function, "__func__", function)
    if getattr(plain, "__code__", None) is not frame.code:
        return Outcome.of(RETURN, call(frame, function, args, kwargs))
    if plain is not function:
        args = (function.__self__, *args)
    for name, value in bound_arguments(plain, frame.source, args, kwargs).items():
        frame.store(name, value)
    return Outcome.of(CONTINUE)
