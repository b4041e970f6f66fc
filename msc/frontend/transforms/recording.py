"""What transformations need of whatever records operations: a tape, or the graph that is being captured."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import types
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from xdsl.ir import Block, Operation, SSAValue

from msc.frontend.capture import INSTALLED, Symbol, capturing
from msc.frontend.dispatch import apply
from msc.frontend.parameter import Parameter
from msc.frontend.reader.calls import call, read_in, readable
from msc.frontend.reader.entry import call_cell_inside
from msc.frontend.reader.journal import TensorContent
from msc.frontend.reader.session import Session
from msc.frontend.reader.signals import Refusal
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.tape import Tape
from msc.support.diagnostics import MscError


class Recording(Protocol):
    """A block that operations are appended to, and tensors that are values of it."""

    @property
    def block(self) -> Block: ...

    def insert(self, op: Operation) -> object:
        """Append an operation."""
        ...

    def ssa(self, tensor: Tensor) -> SSAValue:
        """A tensor as a value of the graph."""
        ...

    def tensor(self, value: SSAValue) -> Tensor:
        """A value of the graph as a tensor."""
        ...

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function of the user."""
        ...

    def one_stands_for_all(self, examples: Sequence[Tensor]) -> AbstractContextManager[None]:
        """Within, a function runs on one example; ElementsDecide is raised where it looks at an example's elements."""
        ...

    def replacing(self, parameter: Parameter) -> None:
        """A parameter is about to refer to another value for a while."""
        ...

    def refusing(self) -> AbstractContextManager[None]:
        """Within, what cannot be transformed in a graph is left to PyNative mode."""
        ...


class _OnTape:
    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.insert = tape.insert
        self.ssa = tape.ssa
        self.tensor = tape.tensor
        self.one_stands_for_all = tape.one_stands_for_all

    @property
    def block(self) -> Block:
        return self._tape.block

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)

    def replacing(self, parameter: Parameter) -> None:
        """Nothing is undone on a tape."""

    def refusing(self) -> AbstractContextManager[None]:
        return nullcontext()


class _InGraph:
    """The graph that a session writes. Raises Refusal if it ends while a function is called."""

    def __init__(self, session: Session) -> None:
        self._session, self._graph = session, session.graph
        self.insert = self._graph.insert
        self.ssa = session.ssa

    @property
    def block(self) -> Block:
        return self._graph.writer.block

    def tensor(self, value: SSAValue) -> Tensor:
        return self._session.journal.born(Tensor.of(self._graph.symbol(value)))

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        block = self.block
        result = _called(self._session, function, tuple(args), kwargs)
        if self._session.graph is not self._graph or self.block is not block:
            raise Refusal("MSC0856", "a function that is transformed needs the elements of a tensor")
        return result

    def one_stands_for_all(self, examples: Sequence[Tensor]) -> AbstractContextManager[None]:
        return nullcontext()

    def replacing(self, parameter: Parameter) -> None:
        """So that a reading that ends inside leaves the value from before."""
        self._session.journal.note(TensorContent(parameter))

    @contextmanager
    def refusing(self) -> Generator[None]:
        try:
            yield
        except MscError as error:
            first = error.diagnostics[0]
            raise Refusal(first.code, first.message, first.help) from None


def _called(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call in the session: user code is read."""
    if session.frames:
        return call(session.frames[-1], function, args, kwargs)
    function = getattr(function, "__msc_function__", function)
    if isinstance(function, types.MethodType):
        return _called(session, function.__func__, (function.__self__, *args), kwargs)
    if hasattr(type(function), "run_construct"):
        return call_cell_inside(function, args, kwargs)
    source = readable(function.__code__) if isinstance(function, types.FunctionType) else None
    return function(*args, **kwargs) if source is None else read_in(session, function, source, args, kwargs)


@contextmanager
def recording() -> Generator[Recording]:
    """What is being recorded: the graph or the tape that is there, else a new tape for the time being."""
    builder = INSTALLED.builder
    if isinstance(builder, Session):
        yield _InGraph(builder)
    elif isinstance(builder, Tape):
        yield _OnTape(builder)
    else:
        tape = Tape()
        try:
            with capturing(tape):
                yield _OnTape(tape)
        finally:
            tape.close()


def variable(record: Recording, tensor: Tensor) -> Tensor:
    """The same elements as a value of its own, so that nothing else that is known depends on it."""
    return apply("identity", _symbolic(record, tensor))


def _symbolic(record: Recording, tensor: Tensor) -> Tensor:
    return tensor if isinstance(tensor.content, Symbol) else record.tensor(record.ssa(tensor))


@contextmanager
def standing_for(record: Recording, parameters: Sequence[Parameter], values: Sequence[Tensor]) -> Generator[None]:
    """Within, parameters have other values; those that are written meanwhile keep what was written."""
    before = [parameter.content for parameter in parameters]
    for parameter, value in zip(parameters, values, strict=True):
        record.replacing(parameter)
        parameter.content = value.content
    try:
        yield
    finally:
        for parameter, value, content in zip(parameters, values, before, strict=True):
            if parameter.content is value.content:
                parameter.content = content


def operations_since(record: Recording, last: Operation | None) -> list[Operation]:
    """The operations of the block behind one that was the last, or all of them."""
    found: list[Operation] = []
    op = record.block.last_op
    while op is not None and op is not last:
        found.append(op)
        op = op.prev_op
    return found[::-1]
