"""Reading one call: from a function and its arguments to a graph that gives its results, and does what else it does."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import array
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from msc.dialects.ms.values import known
from msc.frontend.capture import capturing
from msc.frontend.changes import Changes
from msc.frontend.dtypes import DType
from msc.frontend.parameter import Parameter
from msc.frontend.reader import exceptions, patterns, sequences
from msc.frontend.reader.calls import enter
from msc.frontend.reader.graph import Graph, GraphValue
from msc.frontend.reader.guards import Guard
from msc.frontend.reader.journal import UNBOUND, Attribute, Change, Content, Slot, TensorContent
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.places import ArgumentPlace, Watched, state_of, watched
from msc.frontend.reader.session import Runner, Session, Split
from msc.frontend.reader.settling import elements, settle
from msc.frontend.reader.structures import Flattening, Leaf, SameObject, Template, children, fill, node
from msc.frontend.tensor import Tensor
from msc.support.arrays import Array
from msc.support.wording import a

READERS = (exceptions, patterns)
"""Modules that register what reads their statements when they are imported."""


@dataclass(frozen=True)
class Arguments:
    """What a call is given: the function's arguments as a template, and what stands at its leaves."""

    template: Template
    leaves: Sequence[Any]
    """Tensors, and numbers that may differ between calls."""
    given: Any
    """The tuple of arguments and the dict of named ones."""

    def arrays(self) -> list[Array]:
        return [array_of(leaf) for leaf in self.leaves]

    def with_shapes(self, shapes: Sequence[tuple[int, ...]]) -> Arguments:
        """Arguments for reading alone, of other shapes: nothing has elements of its own."""
        leaves = [
            Tensor.of(np.broadcast_to(np.zeros((), leaf.dtype.numpy), shape)) if isinstance(leaf, Tensor) else leaf
            for leaf, shape in zip(self.leaves, shapes, strict=True)
        ]
        return Arguments(self.template, leaves, fill(self.template, leaves))


def itself(leaf: Any) -> Any:
    """What a leaf makes that is a tensor."""
    return leaf


def array_of(leaf: Any) -> Array:
    """A leaf as an array."""
    return np.asarray(leaf.content if isinstance(leaf, Tensor) else leaf.value)


@dataclass(frozen=True)
class Effect:
    """What a call does beside giving its result: a slot that gets a value, or, without one, something printed."""

    slot: Slot | ArgumentPlace | int | None
    value: Template


@dataclass
class Captured:
    """A graph that was written without a stop, and all that a call needs to use it.

    The leaves of `result` and `effects` are first the outputs of the graph, then the leaves of the arguments.
    """

    graph: Graph
    outputs: Sequence[SSAValue]
    result: Template
    effects: Sequence[Effect]
    guards: Sequence[Guard]
    inputs: Sequence[Callable[[Sequence[Array]], Array]]
    takes_arguments: int
    """How many leaves the arguments have, if the graph takes each in order; -1 otherwise."""
    checked: int = -1
    """The count of `Changes` at which all guards held."""

    def __post_init__(self) -> None:
        self._uncounted = [guard for guard in self.guards if not guard.is_counted]
        changed = [effect.slot for effect in self.effects if isinstance(effect.slot, Attribute | TensorContent)]
        self._changes_counted = bool(changed)
        guarded = {id(guard.parameter) for guard in self.guards}
        self._keeps_guards = all(isinstance(s.holder, Parameter) and id(s.holder) not in guarded for s in changed)
        """Whether what a call changes are parameters whose values no guard is about."""

    def broken(self) -> Guard | None:
        """The first guard that does not hold; None if the graph may be used."""
        count = Changes.count
        guards = self._uncounted if count == self.checked else self.guards
        for guard in guards:
            if not guard.holds():
                return guard
        self.checked = count
        return None

    def finished(self, arrays: Sequence[Array], arguments: Arguments) -> Any:
        """What a call gives whose graph gave `arrays`; its effects take place. A leaf is one object in all of it."""
        leaves = [*map(Tensor.of, arrays), *arguments.leaves]
        result = fill(self.result, leaves)
        if self._changes_counted:
            if self._keeps_guards and self.checked == Changes.count:
                self.checked += 1
            Changes.count += 1
        values = [fill(effect.value, leaves) for effect in self.effects]
        for effect, value in zip(self.effects, values, strict=True):
            if effect.slot is None:
                function, args, kwargs = value
                function(*args, **kwargs)
            elif isinstance(effect.slot, int):
                arguments.leaves[effect.slot].replace(value)
            elif isinstance(effect.slot, ArgumentPlace):
                effect.slot.set(arguments.given, value)
            else:
                effect.slot.set(value)
        return result


@dataclass(frozen=True)
class StoppedCall:
    """A call that was read with stops: it has been executed, and the next one must be read again."""

    result: Any
    splits: Sequence[Split]


class CallReading:
    """One reading of a call of `function`."""

    def __init__(
        self,
        function: Any,
        arguments: Arguments,
        runner: Runner,
        *,
        fullgraph: bool,
        declined: set[tuple[str, int, int]],
        varying: Mapping[int, Parameter] | None = None,
    ) -> None:
        self._function = function
        self._varying = varying
        self._arguments = arguments
        self.session = Session(runner, fullgraph=fullgraph, declined=declined)
        self._given: list[Tensor] = []
        self._symbols: list[GraphValue] = []
        self._watched: list[Watched] = []

    def read(self) -> Captured | StoppedCall:
        """Read the call. Raises what user code raises; what it had changed by then is as Python would leave it."""
        session = self.session
        session.arguments = self._arguments.arrays()
        with capturing(session):
            args, kwargs = fill(self._arguments.template, [self._input(i) for i in range(len(session.arguments))])
            self._watched = list(watched((args, kwargs)))
            for item in self._watched:
                session.journal.born(item.container)
            with _Ending(self):
                result = sequences.given_out(session, self._call(args, kwargs))
                found = None if session.splits else self._captured(result)
            if found is not None:
                return found
            session.run()
            return StoppedCall(self._settled(result), session.splits)

    def _input(self, index: int) -> Any:
        """A leaf of the arguments as a value of the graph; the tensor is another object than the caller's."""
        session, leaf = self.session, self._arguments.leaves[index]
        symbol = session.graph.add_input(known(session.arguments[index]).type, lambda arrays: arrays[index])
        tensor = session.journal.born(Tensor.of(symbol))
        self._given.append(tensor)
        self._symbols.append(symbol)
        return tensor if isinstance(leaf, Tensor) else RuntimeNumber(type(leaf.value), tensor)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:

        function = self._function
        if hasattr(type(function), "run_construct"):
            from msc.frontend.reader.entry import call_cell_inside

            return call_cell_inside(function, args, kwargs)
        for value in (*args, *kwargs.values()):
            self._note_outside(value)
        return enter(self.session, function, args, kwargs)

    def _note_outside(self, value: Any) -> None:
        parts = children(value)
        if parts is None:
            self.session.note_outside(value)

    # After a reading with stops.

    def run_to_here(self) -> None:
        """An error leaves things as it found them: tensors that were assigned to have their values."""
        if self.session.graph.depth == 0:
            self.session.run()
            self._settled(None)

    def _settled(self, result: Any) -> Any:
        """The result with elements in all its tensors; so are the tensors that were changed."""
        for i, tensor in enumerate(self._given):
            if tensor.content is not self._symbols[i] and isinstance(self._arguments.leaves[i], Tensor):
                self._arguments.leaves[i].replace(elements(tensor.content))
        for change in self.session.root.changes.values():
            settle(change.slot.holder)
            value = change.slot.get()
            settled = self._given_back(value)
            if settled is not value and not isinstance(change.slot, TensorContent | Content):
                change.slot.set(settled)
        for item in self._watched:
            if item.is_changed():
                item.place.set(self._arguments.given, self._given_back(state_of(item.container)))
        found = self._given_back(result)
        settle(self._given)  # Code that is not read may have kept one.
        return found

    def _given_back(self, result: Any) -> Any:
        """A structure with elements in its tensors, and the caller's tensors in place of those that stood for them."""
        by_id = {id(t): self._arguments.leaves[i] for i, t in enumerate(self._given)}

        def leaf(value: Any) -> tuple[Any, Callable[[Any], Any]] | None:
            if isinstance(value, RuntimeNumber):
                return value, lambda number: number.known("a result")
            return (by_id[id(value)], lambda tensor: tensor) if id(value) in by_id else None

        flat = Flattening(leaf)
        template = flat.template(result)
        settle(result)
        return fill(template, flat.leaves) if flat.leaves else result

    # After one without.

    def _captured(self, result: Any) -> Captured | None:
        """The graph; None for a result that cannot be made anew in every call."""
        session = self.session
        flat = Flattening(self._leaf)
        flat.is_object = session.journal.is_own
        changes: list[Change] = []
        try:
            template = flat.template(result)
            prints = [Effect(None, flat.template(p)) for p in session.prints]
            writes = self._argument_writes(flat)
            changes = self._finished_changes()
            writes += [Effect(w.place, _held(flat, state_of(w.container))) for w in self._watched if w.is_changed()]
            effects = [Effect(c.slot, self._slot_template(flat, c)) for c in changes]
            self._check(
                template, *(e.value for e in effects if not isinstance(e.slot, Content) or not _is_copy(e.value))
            )
        except _NotRepeatable as reason:
            session.splits.append(Split(session.place(), str(reason)))
            for change in changes:
                change.slot.set(change.after)
            return None
        written = [change.slot.holder for change in changes if isinstance(change.slot, TensorContent)]
        for parameter in (*written, *self._varying_parameters()):
            if isinstance(parameter, Parameter):
                session.graph.thaw(parameter, is_written=id(parameter) in map(id, written))
                if id(parameter) not in session.observed:
                    session.guards.drop((id(parameter), "="))
        return self._placed(flat, template, [*prints, *writes, *effects])

    def _varying_parameters(self) -> list[Parameter]:
        """Those that were read and change between calls."""
        varying = self._varying
        if varying is None:
            return []
        return [p for p in self.session.graph.frozen() if p.varies or id(p) in varying]

    def _finished_changes(self) -> list[Change]:
        """What was changed outside, undone: it takes place when the graph has run."""
        changes = self.session.journal.finish(self.session.root)
        return [c for c in changes.values() if c.slot.holder is not self.session.prints]

    def _argument_writes(self, flat: Flattening) -> list[Effect]:
        found: list[Effect] = []
        for i, tensor in enumerate(self._given):
            if tensor.content is not self._symbols[i]:
                found.append(Effect(i, self._content(flat, tensor.content)))
        return found

    def _leaf(self, value: Any) -> tuple[Any, Callable[[Any], Any]] | None:
        if isinstance(value, RuntimeNumber):
            return value.tensor.content, lambda tensor, kind=value.kind: kind(tensor.content.item())
        if not isinstance(value, Tensor):
            return None
        for i, given in enumerate(self._given):
            if given is value and isinstance(self._arguments.leaves[i], Tensor):
                return i, itself
        if isinstance(value, Parameter) or self._was_there(value):
            return None
        is_new = isinstance(value.content, GraphValue) or self.session.journal.is_own(value)
        return (value.content, itself) if is_new else None

    def _was_there(self, tensor: Tensor) -> bool:
        """Whether a tensor that has been written existed before the call: then it is the same object in every call."""
        change = self.session.root.changes.get(TensorContent(tensor).key)
        return change is not None and isinstance(change.before, np.ndarray)

    def _content(self, flat: Flattening, content: Any) -> Template:
        """The template of what a tensor refers to."""
        template = flat.template(self.session.journal.born(Tensor.of(content)))
        assert isinstance(template, Leaf)
        return Leaf(template.index, elements)

    def _slot_template(self, flat: Flattening, change: Change) -> Template:
        if isinstance(change.slot, TensorContent):
            return self._content(flat, change.after)
        if isinstance(change.after, np.ndarray | bytearray | array.array):
            return SameObject(change.after)
        return _held(flat, change.after) if isinstance(change.slot, Content) else flat.template(change.after)

    def _placed(self, flat: Flattening, template: Template, effects: list[Effect]) -> Captured:
        """The graph with the leaves as its outputs; leaves that are arguments come behind those."""
        session = self.session
        outputs: list[SSAValue] = []
        places: list[int] = []
        computed = [leaf for leaf in flat.leaves if not isinstance(leaf, int)]
        for leaf in flat.leaves:
            if isinstance(leaf, int):
                places.append(len(computed) + leaf)
            else:
                places.append(len(outputs))
                outputs.append(session.ssa(Tensor.of(leaf)))
        moved = [Effect(e.slot, moved_leaves(e.value, places)) for e in effects]
        inputs = [given.value for given in session.graph.inputs]
        guards = list(session.guards)
        symbols = [given.symbol for given in session.graph.inputs]
        count = len(symbols) if symbols == self._symbols else -1
        return Captured(session.graph, outputs, moved_leaves(template, places), moved, guards, inputs, count)

    def _check(self, *templates: Template) -> None:
        for template in templates:
            for value in _constants(template):
                if not self._is_repeatable(value):
                    raise _NotRepeatable(f"{a(type(value).__name__)} is made in every call")

    def _is_repeatable(self, value: Any) -> bool:
        if isinstance(value, _PLAIN) or value is UNBOUND or self.session.is_outside(value):
            return True
        if isinstance(value, FunctionType):
            return not self.session.journal.is_own(value)
        if isinstance(value, Tensor):
            return isinstance(value, Parameter) or isinstance(value.content, np.ndarray)
        return not self.session.journal.is_own(value) and getattr(type(value), "__module__", "") != "builtins"


_PLAIN = (
    *(bool, int, float, complex, str, bytes, type(None), DType, type, range, slice, enum.Enum, np.generic, np.dtype),
    *(BuiltinFunctionType, ModuleType, type(Ellipsis), type(NotImplemented)),
)


class _Ending:
    """Runs the graph when an error of user code ends the reading."""

    def __init__(self, reading: CallReading) -> None:
        self._reading = reading

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception):
            self._reading.run_to_here()


class _NotRepeatable(Exception):
    """A result holds something that the graph does not make."""


def _constants(template: Template) -> list[Any]:
    if isinstance(template, SameObject):
        value = template.value
        return [x for v in value for x in _constants(SameObject(v))] if isinstance(value, tuple) else [value]
    return [] if isinstance(template, Leaf) else [v for item in template.items for v in _constants(item)]


def moved_leaves(template: Template, places: Sequence[int]) -> Template:
    """The template with its leaves at other places; constant tensors become new ones in every call."""
    from dataclasses import replace

    match template:
        case SameObject():
            return template
        case Leaf():
            return Leaf(places[template.index], template.make)
        case _:
            return replace(template, items=[moved_leaves(item, places) for item in template.items])


def _is_copy(template: Template) -> bool:
    """Whether a template is what an array or buffer holds, which is copied into it."""
    return isinstance(template, SameObject) and isinstance(template.value, np.ndarray | bytearray | array.array)


def _held(flat: Flattening, state: Any) -> Template:
    """The template of what a container holds."""
    return node(state, [flat.template(part) for part in children(state) or ()])
