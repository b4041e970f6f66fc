"""What `jit` asks of the reader: signatures of calls, reading a call, and calls inside a graph."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from msc.frontend.capture import INSTALLED, in_pass
from msc.frontend.modes import RECOMPUTES, Hooks
from msc.frontend.mutable import MutableFloat, MutableInt
from msc.frontend.parallel import has_stages
from msc.frontend.parameter import Parameter
from msc.frontend.precision import ATTRIBUTE, computing_in, given, own_precision
from msc.frontend.reader import unread
from msc.frontend.reader.calls import call, enter
from msc.frontend.reader.capture import Arguments, CallReading, Captured, StoppedCall
from msc.frontend.reader.places import are_shared
from msc.frontend.reader.session import Runner, Session
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.structures import Entries, Fields, Flattening, Items, Leaf, SameObject, Template
from msc.frontend.tensor import Tensor
from msc.support.diagnostics import Diagnostic, MscError

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false


def taken_apart(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments of a call: tensors, arrays and mutable numbers are leaves, all else is constant."""
    flat = Flattening(_leaf)
    template = flat.template((args, kwargs))
    return Arguments(template, flat.leaves, (args, kwargs))


def _leaf(value: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    if isinstance(value, Parameter):
        return None
    if isinstance(value, Tensor) and isinstance(value.content, np.ndarray):
        return value, _same
    if isinstance(value, MutableInt | MutableFloat):
        return value, _same
    if isinstance(value, np.ndarray):
        return Tensor(value), _same
    return None


def _same(value: Any) -> Any:
    return value


def signature_of(arguments: Arguments) -> Any:
    """What calls have in common that a compiled graph serves."""
    leaves = tuple(_leaf_key(leaf) for leaf in arguments.leaves)
    return (_key(arguments.template), leaves)


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        content = leaf.content
        return (content.dtype, content.shape)
    return type(leaf)


def _key(template: Template) -> Any:
    match template:
        case Leaf():
            return template.index
        case SameObject():
            return _constant_key(template.value)
        case Items():
            return (template.kind, *map(_key, template.items))
        case Entries():
            return (type(template.like), *template.keys, *map(_key, template.items))
        case Fields():
            return (type(template.like), *map(_key, template.items))


def _constant_key(value: Any) -> Any:
    if isinstance(value, bool | int | str | bytes | type(None)):
        return (type(value), value)
    if isinstance(value, float | complex):
        return (type(value), repr(value))
    if isinstance(value, tuple):
        return (type(value), *map(_constant_key, value))
    return _Identity(value)


class _Identity:
    """A key that is one object."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}"


def described_signature(key: Any) -> str:
    """A signature for people."""
    texts = [f"{k[0]}[{'x'.join(map(str, k[1]))}]" if isinstance(k, tuple) else k.__name__ for k in key[1]]
    return f"({', '.join(texts)})"


@dataclass(frozen=True)
class Unread:
    """A call that could not be read; nothing of it has been executed."""

    diagnostic: Diagnostic


def read_call(
    function: Any,
    arguments: Arguments,
    runner: Runner,
    fullgraph: bool,
    declined: set[tuple[str, int, int]],
    varying: Mapping[int, Parameter] | None = None,
    *,
    has_open_sizes: bool = False,
) -> Captured | StoppedCall | Unread:
    """Read a call. Raises what user code raises, with its lines as the traceback; MSC084x with fullgraph.

    Parameters in `varying`, by identity, and those that have `varies` are arguments of the graph; without it those that
    the graph does not write are constants. One that `has_open_sizes` is written alike at all of them.
    """
    if are_shared(arguments.given):
        return Unread(Diagnostic("MSC0845", "one container is given as two arguments"))
    reading = CallReading(function, arguments, runner, fullgraph=fullgraph, declined=declined, varying=varying)
    reading.session.graph.writer.has_open_sizes = has_open_sizes
    try:
        with ShownToUsers():
            return reading.read()
    except Refusal as refusal:
        session = reading.session
        diagnostic = refusal.diagnostic or Diagnostic(refusal.code, refusal.message, help=refusal.help)
        if fullgraph:
            raise MscError(diagnostic) from None
        session.journal.undo(session.root)
        return Unread(diagnostic)


def run_eagerly(function: Any, arguments: Arguments) -> Any:
    """The call in Python."""
    args, kwargs = arguments.given
    target = getattr(function, "run_construct", None)
    return function(*args, **kwargs) if target is None else target(args, kwargs)


# Calls while a graph is being written.


def call_inside(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of something that was compiled on its own: here it is a part of the graph."""
    session = INSTALLED.builder
    if isinstance(session, Session) and session.frames:
        return call(session.frames[-1], function, tuple(args), kwargs)
    return function(*args, **kwargs)


def call_cell_inside(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a Cell: the `construct` of users is read, that of library layers runs as it is."""
    session = INSTALLED.builder
    precision = own_precision(cell)
    if isinstance(session, Session):
        session.guards.attribute(cell, ATTRIBUTE, precision, is_counted=True)
        session.guards.attribute(cell, RECOMPUTES, cell.__dict__.get(RECOMPUTES), is_counted=True)
    stage = cell.__dict__.get("pipeline_stage") if has_stages() else None
    with computing_in(precision), in_pass(stage=stage):
        run = partial(_call_cell, session, cell, args, kwargs)
        return given(precision, Hooks.recompute(run, True) if cell.__dict__.get(RECOMPUTES) else run())


def _call_cell(session: object, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if hasattr(type(cell), "bprop"):
        from msc.frontend.transforms.custom import call_with_bprop

        return call_with_bprop(cell, args, kwargs)
    if not isinstance(session, Session):
        return cell.run_construct(args, kwargs)
    session.guards.hooks(cell)
    session.note_outside(cell)

    def construct(*inputs: Any) -> Any:
        return _run_construct(session, cell, inputs, kwargs)

    return cell.run_hooked(construct, args, partial(enter, session)) if cell.has_hooks() else construct(*args)


def _run_construct(session: Session, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`construct` without the hooks: the code of users is read, that of the library runs as it is."""
    construct = cell.construct
    if unread.is_user_function(getattr(construct, "__func__", construct)):
        return enter(session, construct, args, kwargs)
    unread.note_state(session, cell)
    return construct(*args, **kwargs)


Line = tuple[str, int, str]
"""The file, the line and the function."""


class ShownToUsers:
    """Gives an error that leaves the block the lines as its traceback that were being read when it came up."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None or isinstance(error, Refusal):
            return
        lines: Sequence[Line] = getattr(error, "msc_frames", ())
        if hasattr(error, "msc_frames"):
            delattr(error, "msc_frames")
        made: types.TracebackType | None = None
        for line in reversed(lines):
            made = _traceback(line, made)
        raise error.with_traceback(made)


def _traceback(line: Line, following: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback of one line: that of code that raises there."""
    file, number, name = line
    code = compile("\n" * (number - 1) + "raise StopIteration", file, "exec").replace(co_name=name)
    try:
        exec(code, {})
    except StopIteration as raised:
        own = raised.__traceback__
        inner = None if own is None else own.tb_next
        return None if inner is None else types.TracebackType(following, inner.tb_frame, inner.tb_lasti, number)
    return following
