"""Reading statements, but for definitions, `try`, `with` and `match`."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from msc.frontend.capture import capturing
from msc.frontend.reader import attributes
from msc.frontend.reader.assignments import assign, delete
from msc.frontend.reader.branches import branch, guarded
from msc.frontend.reader.expressions import condition_of
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.journal import Item
from msc.frontend.reader.liveness import always_leaves
from msc.frontend.reader.loops import PythonLoop, following, left, repeat
from msc.frontend.reader.outcomes import BREAK, CONTINUE, NORMAL, RETURN, Outcome
from msc.frontend.reader.ranges import RuntimeRange
from msc.frontend.tensor import Tensor


def block(frame: Frame, statements: Sequence[ast.stmt]) -> Outcome | None:
    """Execute statements one after the other, as long as control does not leave."""
    for index, statement in enumerate(statements):
        rest = statements[index + 1 :]
        if isinstance(statement, ast.If):
            outcome, is_done = _if(frame, statement, rest)
            if is_done:
                return outcome
        else:
            outcome = frame.execute(statement)
        if outcome is None:
            continue
        if NORMAL in outcome.codes and rest:
            return guarded(frame, statement, outcome, lambda rest=rest: block(frame, rest))
        return outcome
    return None


def _if(frame: Frame, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[Outcome | None, bool]:
    """The outcome of an `if`, and whether that includes the rest of the block: it does if one branch always leaves."""
    frame.node = node
    condition = condition_of(frame, node.test)
    frame.node = node.test
    if not isinstance(condition, Tensor):
        return block(frame, node.body if condition else node.orelse), False
    branches = [list(node.body), list(node.orelse)]
    leaving = [always_leaves(b) for b in branches]
    takes_rest = leaving[0] != leaving[1]
    if takes_rest:
        branches[leaving.index(False)] += rest
    paths = [lambda b=b: block(frame, b) for b in branches]
    return branch(frame, node, condition, *paths), takes_rest


@reads(ast.Expr)
def _expression(frame: Frame, node: ast.Expr) -> None:
    frame.evaluate(node.value)


@reads(ast.Pass)
def _pass_(frame: Frame, node: ast.Pass) -> None:
    return None


@reads(ast.Assign)
def _assign_(frame: Frame, node: ast.Assign) -> None:
    value = frame.evaluate(node.value)
    for target in node.targets:
        assign(frame, target, value)


@reads(ast.AnnAssign)
def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(frame, node.target, frame.evaluate(node.value))
    if frame.is_class and isinstance(node.target, ast.Name):
        frame.locals.setdefault("__annotations__", {})[node.target.id] = frame.evaluate(node.annotation)


@reads(ast.Delete)
def _delete_(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        delete(frame, target)


@reads(ast.Return)
def _return_(frame: Frame, node: ast.Return) -> Outcome:
    return Outcome.of(RETURN, None if node.value is None else frame.evaluate(node.value))


@reads(ast.Break)
def _break_(frame: Frame, node: ast.Break) -> Outcome:
    return Outcome.of(BREAK)


@reads(ast.Continue)
def _continue_(frame: Frame, node: ast.Continue) -> Outcome:
    return Outcome.of(CONTINUE)


@reads(ast.Global)
def _global_(frame: Frame, node: ast.Global) -> None:
    frame.globals_declared.update(node.names)


@reads(ast.Nonlocal)
def _nonlocal_(frame: Frame, node: ast.Nonlocal) -> None:
    return None


@reads(ast.Import)
def _import_(frame: Frame, node: ast.Import) -> None:
    for alias in node.names:
        module = _imported(frame, alias.name)
        bound = module if alias.asname else sys.modules[alias.name.partition(".")[0]]
        _bind(frame, alias.asname or alias.name.partition(".")[0], bound)


@reads(ast.ImportFrom)
def _import_from_(frame: Frame, node: ast.ImportFrom) -> None:
    package = frame.globals.get("__package__") or ""
    name = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    module = _imported(frame, name)
    for alias in node.names:
        inner, is_package = f"{name}.{alias.name}", hasattr(module, "__path__")
        if is_package and not hasattr(module, alias.name) and importlib.util.find_spec(inner) is not None:
            _imported(frame, inner)
        try:
            value = attributes.load(frame, module, alias.name)
        except AttributeError:
            raise ImportError(f"cannot import name {alias.name!r} from {name!r}") from None
        _bind(frame, alias.asname or alias.name, value)


def _imported(frame: Frame, name: str) -> ModuleType:
    """A module, whose code runs outside of the graph if nothing has imported it before."""
    if name not in sys.modules:
        try:
            with capturing(None):
                importlib.import_module(name)
        except ImportError:
            frame.session.stop_caching(f"'{name}' cannot be imported now")
            raise
    frame.session.guards.variable(sys.modules, name, sys.modules[name])
    return sys.modules[name]


def _bind(frame: Frame, name: str, value: Any) -> None:
    assign(frame, ast.Name(name, ast.Store()), value)


@reads(ast.If)
def _if_(frame: Frame, node: ast.If) -> Outcome | None:
    return _if(frame, node, ())[0]


@reads(ast.While)
def _while_(frame: Frame, node: ast.While) -> Outcome | None:
    return repeat(
        PythonLoop(
            frame,
            node,
            lambda: condition_of(frame, node.test),
            lambda: block(frame, node.body),
            lambda: block(frame, node.orelse),
        )
    )


@reads(ast.For)
def _for_(frame: Frame, node: ast.For) -> Outcome | None:
    iterable = frame.evaluate(node.iter)
    if isinstance(iterable, RuntimeRange):
        return _counted(frame, node, iterable)
    return _over_items(frame, node, frame.session.iterate(iterable))


def _over_items(frame: Frame, node: ast.For, items: Iterable[Any]) -> Outcome | None:
    """A copy of the body for each item; behind one that a tensor decides whether it leaves, under that condition."""
    state: Outcome | None = None
    for item in items:

        def iteration(item: Any = item) -> Outcome | None:
            frame.node = node
            assign(frame, node.target, item)
            return following(block(frame, node.body))

        state = iteration() if state is None else guarded(frame, node, state, iteration)
        if state is not None and NORMAL not in state.codes:
            return left(state)
    if state is None:
        return block(frame, node.orelse)
    if node.orelse:
        state = guarded(frame, node.orelse[0], state, lambda: block(frame, node.orelse))
    return None if state is None else left(state)


def _counted(frame: Frame, node: ast.For, numbers: RuntimeRange) -> Outcome | None:
    """A loop over a range whose bounds the graph computes: one that counts."""
    session = frame.session
    hidden: dict[str, Any] = session.journal.born({"counter": numbers.start})

    def body() -> Outcome | None:
        counter = hidden["counter"]
        assign(frame, node.target, counter)
        session.journal.note(Item(hidden, "counter"))
        hidden["counter"] = counter + numbers.step
        return block(frame, node.body)

    def test() -> bool | Tensor:
        counter = hidden["counter"]
        return session.truth(counter < numbers.stop if numbers.step > 0 else counter > numbers.stop)

    return repeat(PythonLoop(frame, node, test, body, lambda: block(frame, node.orelse)))


@reads(ast.Assert)
def _assert_(frame: Frame, node: ast.Assert) -> None:
    session = frame.session
    if session.decide(condition_of(frame, node.test)):
        return
    raise AssertionError(*([] if node.msg is None else [session.real(frame.evaluate(node.msg))]))
