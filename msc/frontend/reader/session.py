"""One reading of a program: the graph that is written, what was changed and looked at, and where it stopped."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from msc.frontend.capture import Property, Symbol, capturing
from msc.frontend.errors import NeedsValue
from msc.frontend.parameter import Parameter
from msc.frontend.reader import attributes, calls, sequences, unread
from msc.frontend.reader.frames import Frame
from msc.frontend.reader.graph import Graph, GraphValue
from msc.frontend.reader.guards import MISSING, Guards, in_class
from msc.frontend.reader.journal import CONTAINERS, Content, Journal, Slot, TensorContent, unchanged
from msc.frontend.reader.kinds import BUFFERS, SCALARS
from msc.frontend.reader.libraries import unread_function
from msc.frontend.reader.numbers import RuntimeNumber, truth
from msc.frontend.reader.settling import settle
from msc.frontend.reader.signals import Refusal
from msc.frontend.tensor import Tensor
from msc.support.arrays import Array
from msc.support.diagnostics import Diagnostic, Location

Runner: TypeAlias = Callable[[Graph, Sequence[SSAValue], Sequence[Array]], Sequence[Array]]
"""Runs a graph that gives these values, on arrays for its inputs."""

_PLAIN = frozenset((*SCALARS, Tensor, Parameter, RuntimeNumber, np.ndarray, range, slice))
"""Types whose operators look at nothing but the operands."""

MAXIMUM_DEPTH = 400
"""Calls inside calls of user functions; each takes about eight of Python's own."""


@dataclass(frozen=True)
class Split:
    """A place where the graph had to end, and why."""

    place: Location | None
    reason: str


def _holds(values: Any, wanted: object, depth: int = 0) -> bool:
    """Whether something is among values, or in a container among them."""
    for value in values:
        if value is wanted:
            return True
        items = value.values() if isinstance(value, Mapping) else value
        is_container = depth < _DEEPEST and isinstance(items, Collection) and not isinstance(items, _ATOMS)
        if is_container and _holds(items, wanted, depth + 1):
            return True
    return False


_DEEPEST = 3
_ATOMS = (Tensor, str, bytes, range, np.ndarray)

_ONE_OF_TWO = "_one_of_two"
"""Attribute of a tensor that stands for one of two objects: the construct that chose."""


class Session:
    """What reads user code asks. `arguments` are the arrays of the call; `runner` runs what has been written so far."""

    def __init__(self, runner: Runner, *, fullgraph: bool, declined: set[tuple[str, int, int]]) -> None:
        self.journal = Journal()
        self.root = self.journal.begin()
        self.guards = Guards()
        self.observed: set[int] = set()
        self.frames: list[Frame] = []
        self.splits: list[Split] = []
        self.arguments: Sequence[Array] = ()
        self.prints: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = self.journal.born([])
        """Calls of `print`, which follow when the graph has run."""
        self.fullgraph = fullgraph
        self.graph = self._new_graph()
        self._declined = declined
        self._gave_up = False
        """Whether the reason for the next stop is known already."""
        self._runner = runner
        self._outside: dict[int, object] = {}
        self._iterated: dict[int, tuple[object, Sequence[Any]]] = {}
        self.sequences: dict[int, tuple[type, Sequence[Any] | None]] = {}
        """An iterator that is a sequence to MindSpore, by identity -> its class, and its items once they are drawn."""

    def _new_graph(self) -> Graph:
        return Graph(self.place, self.guards.parameter)

    # Where the reader is.

    def place(self) -> Location | None:
        return self.frames[-1].place() if self.frames else None

    @contextmanager
    def entered(self, frame: Frame) -> Generator[Frame]:
        """Within, `frame` is what is being read. Raises RecursionError."""
        if len(self.frames) >= MAXIMUM_DEPTH:
            raise RecursionError(f"maximum recursion depth exceeded while '{frame.name}' is read")
        self.frames.append(frame)
        try:
            yield frame
        except BaseException as error:
            self.located(error)
            raise
        finally:
            if self.frames and self.frames[-1] is frame:
                self.frames.pop()

    def located(self, error: BaseException) -> BaseException:
        """Note in an error where in user code it came up, if that is not known yet."""
        if isinstance(error, Refusal) and error.diagnostic is None and self.frames:
            error.diagnostic = self.diagnostic(error.code, error.message, error.help)
        if not hasattr(error, "msc_frames"):
            error.msc_frames = [(f.source.file.name, f.place().line, f.code.co_name) for f in self.frames]  # pyright: ignore[reportAttributeAccessIssue]
        return error

    def diagnostic(self, code: str, message: str, help: str | None) -> Diagnostic:
        """A diagnostic at the place that is being read, with the calls that led there."""
        frame = self.frames[-1]
        callers = tuple(f"called from {f.place()}, in {f.name}" for f in reversed(self.frames[:-1]))
        return Diagnostic(code, message, frame.place(), frame.text(), frame.length(), callers, help)

    # The builder that operations on tensors use.

    def emit(
        self, name: str, operands: Sequence[Tensor | None], properties: Mapping[str, Property]
    ) -> tuple[Tensor, ...]:
        """Append `ms.<name>`."""
        given = [None if operand is None else self.ssa(operand) for operand in operands]
        return tuple(map(Tensor.of, self.graph.emit(name, given, properties)))

    def read(self, parameter: Parameter) -> Tensor:
        """The value that a parameter has at this place of the graph."""
        content = parameter.content
        return Tensor.of(content if isinstance(content, Symbol) else self.graph.read(parameter))

    def write(self, parameter: Parameter, value: Tensor) -> None:
        """From here on the parameter has another value, which also stays after the call."""
        self.journal.note(TensorContent(parameter))
        content = value.content
        if not isinstance(content, Symbol):
            content = self.graph.symbol(self.graph.constant(np.asarray(content)))
        parameter.content = content

    def ssa(self, tensor: Tensor) -> SSAValue:
        """A tensor as an operand of the graph."""
        content = tensor.content
        if isinstance(content, GraphValue):
            if content.graph is self.graph:
                return content.ssa
            if content.array is None:
                raise Refusal("MSC0840", "a tensor is used that belongs to another graph")
            return self.graph.carry(content, content.array).ssa
        if isinstance(tensor, Parameter):
            return self.graph.read(tensor).ssa
        array = np.asarray(content)
        return self.graph.carry(array, array).ssa if self.splits else self.graph.constant(array)

    def observing(self, tensor: Tensor) -> None:
        """What is written holds for this value of a parameter only, even if the graph gives it another one."""
        if isinstance(tensor, Parameter):
            self.guards.parameter(tensor)
            self.observed.add(id(tensor))

    def one_of_two(self) -> Callable[[Tensor], Tensor]:
        """Marks what the construct being read makes of two tensors: items assigned to it would be those of one."""
        place = self._key(self.frames[-1].node)

        def mark(tensor: Tensor) -> Tensor:
            tensor.__dict__[_ONE_OF_TWO] = place
            return tensor

        return mark

    def value_of(self, tensor: Tensor, what: str) -> Array:
        """The elements of a symbolic tensor: the graph ends here and is run. Raises Refusal where it cannot end."""
        content = tensor.content
        assert isinstance(content, GraphValue)
        if content.array is None:
            self._split(f"{what} needs the elements of a tensor")
        assert content.array is not None
        return content.array

    def _split(self, reason: str) -> None:
        unread = unread_function()
        if self.graph.depth or self.fullgraph:
            advice = "compute it with tensor operations, or leave out fullgraph: then the graph is split here"
            if unread is not None:
                advice = f"{unread}, so it runs as it is: write it to a file"
            message = f"{reason}, which are not known while the graph is written"
            raise self.located(Refusal("MSC0840", message, help=advice))
        if unread is not None:
            reason = f"{reason}; {unread}"
        if not self._gave_up:
            self.splits.append(Split(self.place(), reason))
        self._gave_up = False
        self.run()

    def defer(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], what: str) -> None:
        """Call a function when the graph has run, and again in every call. Raises Refusal inside a branch or loop."""
        if self.graph.depth:
            raise Refusal("MSC0844", f"{what} stands where a tensor decides whether it is reached")
        self.journal.note_all([self.prints])
        self.prints.append((function, args, kwargs))

    def run(self) -> None:
        """Run what has been written, so that all tensors have elements, and begin another graph."""
        graph, self.graph = self.graph, self._new_graph()
        for given in graph.inputs:
            given.symbol.array = given.value(self.arguments)
        wanted = [v for v in graph.living() if v.array is None and v.is_outermost(graph.entry)]
        inputs = [given.symbol.array for given in graph.inputs if given.symbol.array is not None]
        arrays = self._runner(graph, [v.ssa for v in wanted], inputs) if wanted else []
        for value, array in zip(wanted, arrays, strict=True):
            value.array = array
        waiting, self.prints[:] = list(self.prints), []
        for function, args, kwargs in waiting:
            function(*args, **kwargs)

    def stop_caching(self, reason: str) -> None:
        """Every call must be read anew. Raises Refusal where that is not allowed."""
        if self.graph.depth or self.fullgraph:
            raise self.located(Refusal("MSC0848", reason, "pass what changes as an argument"))
        self.splits.append(Split(self.place(), reason))

    def changing(self, tensor: Tensor) -> None:
        """A tensor is about to refer to another value. Raises Refusal if a tensor decided which object it is."""
        place = tensor.__dict__.get(_ONE_OF_TWO)
        if place is not None:
            self._declined.add(place)
            raise Refusal(
                "MSC0842",
                "this tensor is one object on one path and another one on the other, and a tensor decided which",
                help="assign to items of a copy: `x = x * 1`",
            )
        self.journal.note(TensorContent(tensor))

    # Decisions.

    def is_symbolic(self, value: Any) -> bool:
        """Whether the graph computes a value that is not known yet."""
        tensor = value.tensor if isinstance(value, RuntimeNumber) else value
        if not isinstance(tensor, Tensor):
            return False
        content = tensor.content
        return isinstance(content, Symbol) and getattr(content, "array", None) is None

    def truth(self, value: Any) -> bool | Tensor:
        """Whether a value counts as true: a bool, or a boolean tensor of rank 0 if the graph decides."""
        if not isinstance(value, Tensor | RuntimeNumber):
            return calls.truth_of(self, value)
        if isinstance(value, Tensor) and value.size != 1:
            return bool(Tensor.of(np.zeros([2 if n == -1 else n for n in value.shape], value.dtype.numpy)))
        return truth(value) if self.is_symbolic(value) else bool(value)

    def decide(self, condition: bool | Tensor) -> bool:
        """A condition as a bool; if the graph computes it, that ends here and is run."""
        return bool(condition)

    def may_capture(self, construct: ast.AST) -> bool:
        """Whether a construct has not failed to become part of a graph before; always inside another one."""
        return self.graph.depth > 0 or self.fullgraph or self._key(construct) not in self._declined

    def give_up(self, construct: ast.AST, refusal: Refusal) -> None:
        """Go on without a construct in the graph. Raises the refusal where that is impossible."""
        self.located(refusal)
        if self.graph.depth or self.fullgraph or isinstance(refusal, calls.Recursion):
            raise refusal
        self._declined.add(self._key(construct))
        found = refusal.diagnostic
        self._gave_up = True
        self.splits.append(Split(self.place() if found is None else found.location, refusal.message))

    def _key(self, construct: ast.AST) -> tuple[str, int, int]:
        return (self.frames[-1].source.file.name, construct.lineno, construct.col_offset)  # pyright: ignore[reportAttributeAccessIssue]

    def real(self, value: Any) -> Any:
        """A runtime number as the number that it is."""
        return value.known("a Python number") if isinstance(value, RuntimeNumber) else value

    # What user code does.

    def operate(self, function: Callable[..., Any], *operands: Any) -> Any:
        """An operator of Python."""
        if not all(type(operand) in _PLAIN for operand in operands):
            name = function.__name__.strip("_")
            result = self.by_method(f"__{name}__", *operands)
            if result is not MISSING and result is not NotImplemented:
                return result
            shallow = function in calls.LOADS
            unread.note_looking(self, operands, f"the operator '{name}'", takes_callables=True, shallow=shallow)
        result = self.library(function, operands, {})
        if isinstance(result, Tensor):
            return self.made(result, operands)
        fresh = type(result) in (list, dict, set) and not any(result is o for o in operands)
        return self.journal.born(result) if fresh and function not in calls.LOADS else result

    def by_method(self, name: str, *operands: Any) -> Any:
        """What a method of user code gives that stands for an operator of its object; MISSING if there is none."""
        kind = type(operands[0])
        method = in_class(kind, name)
        if not unread.is_user_function(method):
            return MISSING
        attributes.of_class(self, kind, name, method)
        if not self.journal.is_own(operands[0]):
            self.guards.class_of(operands[0])
        return self.call(self.frames[-1], method, operands, {})

    def adopt(self, value: Any) -> Any:
        """Something that joining two paths has made is new, but for values that two slots share."""
        return self.journal.born(value) if isinstance(value, Tensor | list | dict | set) else value

    def made(self, result: Any, given: Sequence[Any]) -> Any:
        """A result of library code, whose tensors are new unless they were given to it, or known before."""
        if isinstance(result, tuple | list):
            for item in result:
                self.made(item, given)
        elif isinstance(result, Tensor) and not isinstance(result, Parameter):
            known = self.journal.is_own(result) or self.is_outside(result) or self._comes_from(given, result)
            if not known:
                self.journal.born(result)
        return result

    def _comes_from(self, given: Sequence[Any], result: Any) -> bool:
        sources = [source for value in given for source in self._iterated.get(id(value), (None, ()))[1]]
        return _holds((*given, *sources), result)

    def iterates(self, iterator: Any, sources: Sequence[Any]) -> None:
        """An iterator gives items of these values."""
        self._iterated[id(iterator)] = (iterator, sources)

    def becomes_sequence(self, iterator: Any, kind: type, items: Sequence[Any] | None = None) -> Any:
        """Note that an iterator is new, and what it is where a sequence is asked for."""
        self.sequences[id(iterator)] = (kind, items)
        return self.journal.born(iterator)

    def library(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call library code. Where it needs elements of tensors, the graph ends, and it computes with those."""
        try:
            return function(*args, **kwargs)
        except NeedsValue as error:
            if self.graph.depth or self.fullgraph:
                raise
            self.splits.append(Split(self.place(), error.diagnostics[0].message.partition(", which")[0]))
        self.run()
        settle((args, kwargs, getattr(function, "__self__", None)))
        with capturing(None):
            return function(*args, **kwargs)

    def iterate(self, iterable: Any) -> Iterator[Any]:
        self.consume(iterable)
        if unread.is_user_class(type(iterable)):
            given = self.by_method("__iter__", iterable)
            if given is not MISSING and given is not iterable:
                return self.iterate(given)
        if type(iterable) not in _PLAIN and not self.journal.is_own(iterable):
            unread.note_looking(self, (iterable,), "iteration", takes_callables=True, shallow=True)
        return sequences.iterated(self, iterable)

    def consume(self, value: Any) -> None:
        """An iterator is about to give items, which cannot be taken back. Raises Refusal where it must be possible."""
        if not hasattr(type(value), "__next__"):
            return
        if not self.journal.is_own(value):
            self.stop_caching("an iterator from outside gives another item in every call")
        if self.graph.depth and not self.journal.born_since(value, self.journal.scopes[-1].start):
            raise Refusal("MSC0845", "an iterator from outside gives an item on a path that a tensor decides on")

    def attribute(self, frame: Frame, owner: Any, name: str) -> Any:
        return attributes.load(frame, owner, name)

    def set_attribute(self, frame: Frame, owner: Any, name: str, value: Any) -> None:
        attributes.store(frame, owner, name, value)

    def delete_attribute(self, owner: Any, name: str) -> None:
        attributes.delete(self, owner, name)

    def call(self, frame: Frame, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return calls.call(frame, function, args, kwargs)

    def is_instance(self, value: Any, kinds: Any) -> bool:
        """`isinstance`, which takes runtime numbers for the numbers that they are."""
        return issubclass(value.kind, kinds) if isinstance(value, RuntimeNumber) else isinstance(value, kinds)

    # What user code looks at.

    def note_outside(self, value: Any) -> None:
        """A value comes from outside of what is being read."""
        self._outside[id(value)] = value

    def is_outside(self, value: Any) -> bool:
        return id(value) in self._outside

    def inherit(self, container: Any, item: Any) -> Any:
        """An item of a container; it comes from outside if the container does."""
        if id(container) in self._outside:
            self._outside[id(item)] = item
        return item

    def look_into(self, container: Any) -> None:
        """The items of a container matter: if it comes from outside, they must stay as they are."""
        if not isinstance(container, CONTAINERS + BUFFERS) or self.journal.is_own(container):
            return
        change = self.root.changes.get(Content(container).key) if isinstance(container, CONTAINERS) else None
        self.guards.content(container, None if change is None else change.before)

    def is_written(self, slot: Slot) -> bool:
        """Whether a slot holds what has been written; not, if only another path has written it."""
        change = self.root.changes.get(slot.key)
        return change is not None and not unchanged(change.before, slot.get())
