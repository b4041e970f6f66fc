"""Reading `try`, `raise` and `with`: Python's own, since what they depend on is known when they are reached."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from contextlib import ExitStack
from typing import Any, Self

from msc.frontend.reader.assignments import assign
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.outcomes import Outcome
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.statements import block


@reads(ast.Raise)
def _raise_(frame: Frame, node: ast.Raise) -> None:
    if node.exc is None:
        if not frame.handled:
            raise RuntimeError("No active exception to reraise")
        raise frame.handled[-1]
    error = frame.evaluate(node.exc)
    cause = None if node.cause is None else frame.evaluate(node.cause)
    frame.node = node
    if isinstance(error, type) and issubclass(error, BaseException):
        error = frame.session.call(frame, error, (), {})
    if not isinstance(error, BaseException):
        raise TypeError("exceptions must derive from BaseException")
    if node.cause is not None:
        raise error from cause
    if frame.handled:
        error.__context__ = frame.handled[-1]
    raise error


@reads(ast.Try)
def _try_(frame: Frame, node: ast.Try) -> Outcome | None:
    """Where a value is needed that only the graph knows, the graph is run: so handlers see what eager code sees."""
    if not node.finalbody:
        return _handled(frame, node)
    try:
        outcome = _handled(frame, node)
    except Refusal:
        raise
    except BaseException:
        replaced = block(frame, node.finalbody)
        if replaced is not None:
            return replaced
        raise
    replaced = block(frame, node.finalbody)
    return outcome if replaced is None else replaced


def _handled(frame: Frame, node: ast.Try) -> Outcome | None:
    outcome: Outcome | None = None
    with _Catching(frame) as caught:
        outcome = block(frame, node.body)
    if caught.error is not None:
        return _handle(frame, node, caught.error)
    return block(frame, node.orelse) if outcome is None else outcome


class _Catching:
    """Keeps the error that leaves the block, but not the signals of the reader itself."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._depth = len(frame.session.frames)
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None or isinstance(error, Refusal):
            return False
        del self._frame.session.frames[self._depth :]
        self.error = error
        return True


def _handle(frame: Frame, node: ast.Try, error: BaseException) -> Outcome | None:
    """Execute the handler that takes an exception; raise it again if there is none."""
    for handler in node.handlers:
        if handler.type is not None and not isinstance(error, frame.evaluate(handler.type)):
            continue
        if handler.name is not None:
            frame.store(handler.name, error)
        frame.handled.append(error)
        try:
            return block(frame, handler.body)
        finally:
            frame.handled.pop()
            if handler.name is not None and handler.name in frame.locals:
                frame.delete(handler.name)
    raise error


@reads(ast.With)
def _with_(frame: Frame, node: ast.With) -> Outcome | None:
    session = frame.session
    with ExitStack() as stack:
        for item in node.items:
            manager = frame.evaluate(item.context_expr)
            entered = session.call(frame, _special(manager, "__enter__"), (manager,), {})
            stack.push(_Exit(frame, manager).__exit__)
            if item.optional_vars is not None:
                assign(frame, item.optional_vars, entered)
        return block(frame, node.body)
    return None


class _Exit:
    """Calls `__exit__` of a context manager as user code; not where the graph cannot go on, since nothing happened."""

    def __init__(self, frame: Frame, manager: Any) -> None:
        self._frame = frame
        self._manager = manager

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, Refusal):
            return False
        session = self._frame.session
        result = session.call(
            self._frame, _special(self._manager, "__exit__"), (self._manager, kind, error, traceback), {}
        )
        return session.decide(session.truth(result))


def _special(manager: Any, name: str) -> Any:
    method = getattr(type(manager), name, None)
    if method is None:
        kind = type(manager).__name__
        raise TypeError(f"'{kind}' object does not support the context manager protocol")
    return method
