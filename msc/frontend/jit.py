"""`jit`: functions and Cells whose calls are captured and compiled, once for each signature."""

from __future__ import annotations

import functools
import time
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from msc.frontend.boundary import public
from msc.frontend.capture import INSTALLED
from msc.frontend.errors import OVERFLOW, ApiTypeError, ApiValueError, at_user_line
from msc.frontend.modes import FORGETTING, INTERPRETER, Wishes
from msc.frontend.parallel import is_partitioned
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.notices import collected
from msc.support.wording import a

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from msc.frontend.execution import Program
    from msc.frontend.open_sizes import AlikeCalls, Shapes
    from msc.frontend.parameter import Parameter
    from msc.frontend.reader.capture import Arguments, Captured
    from msc.frontend.reader.updates import ParameterUpdate, UpdatesInPlace
    from msc.graph.index_checks import IndexChecks
    from msc.runtime.compiled_model import CompiledModel
    from msc.support.arrays import Array

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

MAXIMUM_ENTRIES = 8
"""Compiled graphs of one signature; what changes more often than that runs in PyNative mode."""

LARGE_CONSTANTS = 1 << 20
"""Bytes of constants from which only the last graph of a signature is kept."""

MAXIMUM_SEGMENTS = 64
"""Compiled parts of split graphs of one function."""


@dataclass
class CompilationEvent:
    """Something that happened to a function: `kind` is `compiled`, `recompiled`, `read`, `split` or `not compiled`."""

    kind: str
    reason: str
    place: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class CompiledGraph:
    """A graph and the program that runs it."""

    captured: Captured
    program: Program | None
    updates: UpdatesInPlace | None = None
    """The parameters that a call updates in place."""
    checks: IndexChecks | None = None
    """What must hold of the indices that a call is given; None if there are none to look at."""
    is_open: bool = False
    """Whether the program is one for open sizes, which serves other calls too."""

    def is_direct(self, count: int) -> bool:
        """Whether a call passes its `count` tensors to the program and gives the one that comes back."""
        from msc.frontend.reader.capture import itself

        captured = self.captured
        result = captured.result
        is_tensor = getattr(result, "make", None) is itself and len(captured.outputs) == 1
        return is_tensor and not captured.effects and captured.takes_arguments == count == len(captured.inputs)

    def called(self, args: Sequence[Any]) -> Any:
        """The result for tensors."""
        assert self.program is not None
        arrays = [tensor.content for tensor in args]
        return Tensor.of(_checked(self.program, self.checks, arrays)[0])


@dataclass
class CompilationHistory:
    """What happened to a function, for `jit.explain`. The same event is kept once."""

    events: list[CompilationEvent] = field(default_factory=list[CompilationEvent])

    def add(self, event: CompilationEvent) -> None:
        if not any((e.kind, e.reason, e.place) == (event.kind, event.reason, event.place) for e in self.events):
            self.events.append(event)


def _function_of(jitted: Any, *_: Any) -> Any:
    return jitted.__msc_function__


def _public_call(function: F) -> F:
    """The boundary around calls of what is jitted, whose arguments the function itself describes."""
    return public(function, "jit", _function_of)


class Jitted(Generic[P, R]):
    """A function or Cell whose calls run as compiled graphs."""

    def __init__(self, function: Callable[P, R], wishes: Wishes | None = None, *, fullgraph: bool = False) -> None:
        self.__msc_function__ = function
        self._fullgraph = fullgraph
        self._wishes = wishes or Wishes()
        self._entries: dict[Any, list[CompiledGraph]] = {}
        self._compilations: dict[Any, int] = {}
        self._direct: dict[Any, CompiledGraph] = {}
        """The entries that take nothing but tensors and give one, by the shapes and types of those."""
        self._declined: set[tuple[str, int, int]] = set()
        self._segments: dict[Any, Program | None] = {}
        """Parts of split graphs by their text and the elements of the arrays in them; None for one seen once."""
        self._alike: dict[Any, AlikeCalls] = {}
        """Calls that differ in sizes alone, by all else of their signatures."""
        self._varying: dict[int, Parameter] = {}
        """Parameters that changed after they had been compiled as constants: from then on they are arguments."""
        self.history = CompilationHistory()
        _LIVE.add(self)
        functools.update_wrapper(self, function, updated=())

    def forget(self) -> None:
        """Forget what is compiled: what it was compiled for has changed."""
        for table in (self._entries, self._compilations, self._direct, self._segments, self._alike):
            table.clear()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["__msc_function__"], name)

    def __repr__(self) -> str:
        return f"<jit of {self.__msc_function__!r}>"

    @_public_call
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if INSTALLED.builder is not None:
            from msc.frontend.reader.entry import call_inside

            return call_inside(self.__msc_function__, args, kwargs)
        from msc.frontend.reader.entry import signature_of, taken_apart

        direct = None if kwargs else self._direct.get(_shapes(args))
        if direct is not None and direct.captured.broken() is None:
            return self._fitting(lambda: direct.called(args), lambda: taken_apart(args, kwargs))
        arguments = taken_apart(args, kwargs)
        key = signature_of(arguments)
        entry = self._find(key)
        if entry is None:
            return self._read(key, arguments)
        key = None if kwargs else _shapes(args)
        if key is not None and entry.is_direct(len(args)):
            self._direct[key] = entry
        return self._fitting(lambda: _run(entry, arguments), lambda: arguments)

    def _fitting(self, run: Callable[[], Any], arguments: Callable[[], Arguments]) -> Any:
        """What a graph gives; a call whose integers need more than 64 bits runs in PyNative mode."""
        try:
            return run()
        except MscError as error:
            first = error.diagnostics[0]
            if first.code != OVERFLOW:
                raise
            return self._eager(arguments(), first.message, str(first.location or ""))

    def _find(self, key: Any) -> CompiledGraph | None:
        """An entry whose guards hold, the most recent one first."""
        broken: str | None = None
        for entry in reversed(self._entries.get(key, [])):
            guard = entry.captured.broken()
            if guard is None:
                return entry
            broken = broken or guard.what
            changed = (g.parameter for g in entry.captured.guards if g.parameter is not None and not g.holds())
            self._varying.update((id(parameter), parameter) for parameter in changed)
        if broken is not None:
            self.history.add(CompilationEvent("recompiled", f"{broken} has changed"))
        return None

    def _read(self, key: Any, arguments: Arguments) -> Any:
        from msc.frontend.reader.entry import Unread, read_call

        is_other = bool(self._entries) and key not in self._entries
        entries = self._entries.setdefault(key, [])
        if self._compilations.get(key, 0) >= MAXIMUM_ENTRIES:
            return self._eager(arguments, "what it depends on changes in every call", "")
        start = time.perf_counter()
        from msc.frontend.sharing import widened

        whole = widened(arguments)
        fullgraph = self._fullgraph or is_partitioned()
        found = read_call(self.__msc_function__, whole, self._run_segment, fullgraph, self._declined, self._varying)
        if isinstance(found, Unread):
            return self._eager(arguments, found.diagnostic.message, str(found.diagnostic.location or ""))
        if not hasattr(found, "guards"):
            stopped = cast(Any, found)
            for split in stopped.splits:
                self.history.add(CompilationEvent("split", split.reason, str(split.place or "")))
            return stopped.result
        captured = cast("Captured", found)
        entry = self._compile(captured, arguments, key)
        self._compilations[key] = self._compilations.get(key, 0) + 1
        if _is_large(entry):
            entries[:] = [e for e in entries if not _is_large(e)]
            self._direct.clear()
        entries.append(entry)
        what = _described(key)
        if entry.is_open:
            self.history.add(CompilationEvent("read", f"for {what}, which the graph for open sizes serves"))
        else:
            if is_other:
                self.history.add(CompilationEvent("recompiled", f"called with {what}"))
            self.history.add(CompilationEvent("compiled", f"for {what}", "", time.perf_counter() - start))
        return self._fitting(lambda: _run(entry, arguments), lambda: arguments)

    def _compile(self, captured: Captured, arguments: Arguments, key: Any) -> CompiledGraph:
        from msc.frontend.execution import compiled, program_of, runs
        from msc.frontend.reader.updates import UpdatesInPlace

        if not captured.outputs:
            return CompiledGraph(captured, None)
        if is_partitioned():
            from msc.frontend.sharing import rank_program

            return CompiledGraph(captured, rank_program(captured, arguments, self._wishes))
        module, updates, checks = _finished(captured, self._wishes)
        weights = captured.graph.weights()
        if self._wishes.backend == INTERPRETER:
            return CompiledGraph(captured, program_of(module, weights, self._wishes), None, checks or None)
        shared = self._open_model(module, weights, arguments, key)
        model = shared or compiled(module, weights, self._wishes)
        in_place = UpdatesInPlace(model, updates) if updates else None
        return CompiledGraph(captured, runs(model), in_place, checks or None, shared is not None)

    def _open_model(
        self, module: ModuleOp, weights: Mapping[str, Array], arguments: Arguments, key: Any
    ) -> CompiledModel | None:
        """What is compiled for open sizes and serves a call; None if the call is compiled on its own."""
        from msc.frontend.open_sizes import AlikeCalls, told_ranges
        from msc.frontend.reader.capture import Captured
        from msc.frontend.reader.entry import read_call

        def read(shapes: Shapes) -> tuple[ModuleOp, Mapping[str, Array]]:
            other = arguments.with_shapes(shapes)
            with _NobodysCall(), collected():
                found = read_call(
                    self.__msc_function__, other, _not_run, True, set(), self._varying, has_open_sizes=True
                )
            if not isinstance(found, Captured):
                raise ValueError("it is no single graph at other sizes")
            return _finished(found, self._wishes)[0], found.graph.weights()

        shapes = tuple(array.shape for array in arguments.arrays())
        kinds: list[Any] = [
            (leaf.dtype, leaf.ndim) if isinstance(leaf, Tensor) else type(leaf) for leaf in arguments.leaves
        ]
        alike = self._alike.setdefault((key[0], *kinds), AlikeCalls())
        alike.told = told_ranges(self.__msc_function__, shapes)
        start = time.perf_counter()
        known, refused = len(alike.graphs), len(alike.refusals)
        model = alike.model(shapes, module, weights, read, self._wishes)
        if len(alike.graphs) > known:
            seconds = time.perf_counter() - start
            self.history.add(CompilationEvent("compiled", f"for open sizes: {alike.graphs[-1]}", "", seconds))
        for _, reason in alike.refusals[refused:]:
            self.history.add(CompilationEvent("not compiled", f"for open sizes: {reason}"))
        return model

    def _run_segment(self, graph: Any, outputs: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
        """Run a part of a graph: compiled when it is seen for the second time, by the interpreter before."""
        from msc.frontend.execution import program_of
        from msc.frontend.reader.kinds import elements_of

        checks = graph.checks(outputs)
        module = graph.finish([*outputs, *checks.values])
        weights = graph.weights()
        program = None
        if not graph.parameters and self._wishes.backend != INTERPRETER:
            key = (str(module), *(elements_of(array) for array in weights.values()))
            is_known = key in self._segments
            program = self._segments.pop(key, None)
            if is_known and program is None:
                program = program_of(module, weights, self._wishes)
            self._segments[key] = program
            _forget_oldest(self._segments, MAXIMUM_SEGMENTS)
        return _checked(program or program_of(module, weights, Wishes(INTERPRETER)), checks, inputs)

    def _eager(self, arguments: Arguments, reason: str, place: str) -> Any:
        from msc.frontend.reader.entry import run_eagerly

        self.history.add(CompilationEvent("not compiled", reason, place))
        return run_eagerly(self.__msc_function__, arguments)


def _finished(captured: Captured, wishes: Wishes) -> tuple[ModuleOp, Sequence[ParameterUpdate], IndexChecks]:
    """The module of a graph, the parameters that it updates in place, and what must hold of indices."""
    from msc.frontend.reader.updates import note_updates, updates_of

    graph = captured.graph
    checks = graph.checks(captured.outputs)
    module = graph.finish([*captured.outputs, *checks.values])
    updates = [] if checks.results or wishes.backend == INTERPRETER else updates_of(captured)
    if updates:
        note_updates(module, updates)
    return module, updates, checks


class _NobodysCall:
    """Reading for sizes that nobody called with: what the user's code raises there is a reason, and no error."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, MscError):
            raise ValueError(f"Python raises {type(error).__name__} at other sizes") from None


def _not_run(*_: object) -> Sequence[Array]:
    """A graph that is read for sizes that nobody called it with must not run."""
    raise ValueError("it is no single graph at other sizes")


def _is_large(entry: CompiledGraph) -> bool:
    """Whether a graph has constants of which it would take much memory to keep old versions."""
    return sum(array.nbytes for array in entry.captured.graph.weights().values()) > LARGE_CONSTANTS


def _forget_oldest(table: dict[Any, Any], size: int) -> None:
    """Keep the entries of a dict that were added last."""
    while len(table) > size:
        table.pop(next(iter(table)))


def _shapes(args: Sequence[Any]) -> Any:
    """What tensors have that programs depend on; None if anything else is among the arguments."""
    key: list[Any] = []
    for value in args:
        content = value.content if type(value) is Tensor else None
        if type(content) is not np.ndarray:
            return None
        key += (content.dtype.num, content.shape)
    return tuple(key)


def _checked(
    program: Program, checks: IndexChecks | None, inputs: Sequence[Any], updates: UpdatesInPlace | None = None
) -> Sequence[Any]:
    """What a program gives. Raises MSC0610 for an index that is outside, and then nothing has been updated."""
    if checks is None:
        if updates is not None:
            updates.prepare(cast(list[Any], inputs))
        return program(inputs)
    try:
        checks.before(inputs)
        if updates is not None:
            updates.prepare(cast(list[Any], inputs))
        return checks.behind(program(inputs))
    except MscError as error:
        first = error.diagnostics[0]
        if first.location is not None:
            raise
        raise MscError(at_user_line(first.code, first.message, help=first.help, notes=first.notes)) from None


def _run(entry: CompiledGraph, arguments: Arguments) -> Any:
    arrays: Sequence[Any] = ()
    if entry.program is not None:
        given = arguments.arrays()
        inputs = [value(given) for value in entry.captured.inputs]
        arrays = _checked(entry.program, entry.checks, inputs, entry.updates)
    return entry.captured.finished(arrays, arguments)


def _described(key: Any) -> str:
    from msc.frontend.reader.entry import described_signature

    return described_signature(key)


# The public functions.


_WITHOUT_EFFECT = frozenset(
    "mode input_signature hash_args jit_config compile_once disable_format_transform exec_order ge_options "
    "infer_boost".split()
)
"""Options of MindSpore's `jit` that are taken and change nothing."""
_OPTIONS = (
    "fullgraph",
    "backend",
    "target",
    "threads",
    "march",
    "capture_mode",
    "jit_level",
    "dynamic",
    *sorted(_WITHOUT_EFFECT),
)


class Jit:
    """`jit`, and `jit.explain` beside it."""

    @overload
    def __call__(self, function: Callable[P, R], **options: Any) -> Callable[P, R]: ...
    @overload
    def __call__(self, function: None = None, **options: Any) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def __call__(
        self,
        function: Any = None,
        *,
        fullgraph: bool = False,
        backend: str | None = "",
        capture_mode: str = "ast",
        jit_level: str = "O0",
        dynamic: int = 0,
        target: str | None = None,
        threads: int | None = None,
        march: str | None = None,
        **others: Any,
    ) -> Any:
        """Compile the calls of a function, method or Cell: `jit(f)`, `@jit`, `@jit(fullgraph=True)`.

        With `fullgraph` what cannot become one graph is an error; otherwise the graph is split there, or the call runs
        in PyNative mode, and `jit.explain(f)` says why. `backend="interpreter"` runs graphs without compiling C.
        `target`, `threads` and `march` are those of `msc.compile`, in place of the context's `device_target` and
        `runtime_num_threads`. The other options are MindSpore's and change nothing, which is said once; sizes that
        differ between calls become open whatever `dynamic` is. Raises MSC0840 and following, MSC0814 for an unknown
        option or backend, MSC0887 for a value that an option does not have.
        """
        for name in others:
            if name not in _WITHOUT_EFFECT:
                near = did_you_mean(name, _OPTIONS) or f"there are {', '.join(_OPTIONS)}"
                raise ApiTypeError("MSC0814", f"jit has no option '{name}'", help=near)
        unused("jit", capture_mode=capture_mode, jit_level=jit_level, **others)
        if dynamic not in (0, 1):
            raise ApiValueError("MSC0887", f"jit: dynamic is {dynamic!r}; it is 0 or 1, and either leaves sizes open")
        if backend in (None, "ms_backend", "GE"):
            backend = ""
        if backend not in ("", INTERPRETER):
            raise ApiValueError("MSC0814", f"jit: backend is {backend!r}, not one of '', 'interpreter'")
        if function is None:
            return functools.partial(
                self, fullgraph=fullgraph, backend=backend, target=target, threads=threads, march=march
            )
        if isinstance(function, Jitted):
            return cast(Any, function)
        if not callable(function):
            raise ApiTypeError("MSC0814", f"jit takes a function or a Cell, not {a(type(function).__name__)}")
        return Jitted(cast(Any, function), Wishes(backend, target, threads, march), fullgraph=fullgraph)

    def explain(self, target: Any) -> str:
        """What became of the calls of a function or Cell: graphs that were compiled, where they were split, and why.

        Raises MSC0849 for what was not called in graph mode.
        """
        function: Any = target.__func__ if isinstance(target, types.MethodType) else target
        found: Jitted[..., Any] | None = function if issubclass(type(function), Jitted) else None
        if found is None and hasattr(function, "construct"):
            found = _CELLS.get(function)
        if found is None:
            help_ = "call it first, in graph mode or as what jit returned"
            raise MscError(Diagnostic("MSC0849", "jit.explain: this has not been compiled", help=help_))
        return "\n".join(map(_line, found.history.events)) or "not called yet"


jit = Jit()
"""Compiles the calls of functions and Cells; see `Jit.__call__`."""

_LIVE: WeakSet[Jitted[..., Any]] = WeakSet()
"""All functions and Cells that hold compiled graphs."""


def _forget_compiled() -> None:
    for jitted in list(_LIVE):
        jitted.forget()


FORGETTING.append(_forget_compiled)

_CELLS: WeakKeyDictionary[Any, Jitted[..., Any]] = WeakKeyDictionary()


def call_cell(cell: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a Cell in graph mode, or as a part of the graph that is being captured."""
    if INSTALLED.builder is not None:
        from msc.frontend.reader.entry import call_cell_inside

        return call_cell_inside(cell, args, dict(kwargs))
    found = _CELLS.get(cell)
    if found is None:
        found = _CELLS[cell] = Jitted(cell)
    return found(*args, **kwargs)


def _line(event: CompilationEvent) -> str:
    place = f"{event.place}: " if event.place else ""
    seconds = f" in {event.seconds * 1000:.0f} ms" if event.seconds else ""
    return f"{place}{event.kind}: {event.reason}{seconds}"
