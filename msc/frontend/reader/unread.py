"""Code that is not read but runs as it is, of libraries above all: which of it, and of which values, gives constants.

Such code may look at whatever it is given. What it can see of values of known kinds has been recorded where they were
loaded, and functions that are listed here look at nothing else. With any other function, and any other value, the
function that is being read must be read in every call.
"""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import functools
import sys
import types
from abc import ABCMeta
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from msc.frontend.dtypes import DType
from msc.frontend.reader.guards import MISSING, in_class
from msc.frontend.reader.kinds import BUFFERS, MAPPINGS, SCALARS, SEQUENCES, SETS
from msc.frontend.reader.libraries import is_library_class, is_library_code, is_own_file
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.source import source_of
from msc.frontend.tensor import Tensor
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.frontend.reader.session import Session

_KNOWN_MODULES = frozenset(
    "builtins math cmath operator _operator itertools functools _functools collections _collections collections.abc "
    "_collections_abc abc _abc numbers fractions string re copy dataclasses typing types enum bisect _bisect heapq "
    "_heapq textwrap statistics struct _struct contextlib numpy numpy.linalg numpy.fft ml_dtypes".split()
)
"""Modules whose functions depend on their arguments alone."""
_UNKNOWN_FUNCTIONS = frozenset(
    "open input print vars dir locals globals eval exec breakpoint id __import__ object.__repr__ "
    "load loadtxt genfromtxt fromfile memmap save savez savez_compressed savetxt geterr seterr seterrcall geterrcall "
    "get_printoptions set_printoptions printoptions errstate getbufsize setbufsize array_repr array_str array2string "
    "vectorize frompyfunc fromregex DataSource ndarray.tofile ndarray.dump".split()
)
"""Functions of those that look at more: at files, settings, the frame that calls them."""
_HOLDING = frozenset(
    "partial wraps update_wrapper list.append list.insert list.pop list.clear list.copy list.reverse dict.get dict.pop "
    "dict.setdefault dict.items dict.keys dict.values dict.copy dict.clear dict.popitem deque.append deque.appendleft "
    "deque.pop deque.popleft deque.clear set.add set.discard set.clear".split()
)
"""Those that only keep what they are given, or give back what they keep."""
_ITERATING = frozenset(
    "list tuple dict zip enumerate reversed iter next chain repeat islice product cycle starmap list.extend "
    "dict.update deque deque.extend deque.extendleft OrderedDict chain.from_iterable zip_longest pairwise permutations "
    "combinations".split()
)
"""Those that do so with the items of what they are given."""
_IMMUTABLE = (*SCALARS, np.generic, np.dtype, DType, enum.Enum, range, slice, type(Ellipsis), type(NotImplemented))
_IMMUTABLE_NAMES = frozenset(
    "fractions.Fraction decimal.Decimal datetime.date datetime.datetime datetime.timedelta re.Pattern uuid.UUID "
    "pathlib.PosixPath pathlib.PurePosixPath pathlib.WindowsPath pathlib.PureWindowsPath".split()
)
_ALWAYS_KNOWN = (*_IMMUTABLE, Tensor, RuntimeNumber, np.ndarray, *BUFFERS)
_HEAP_TYPE = 1 << 9
"""Flag of classes that are made while a program runs."""
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_DEEPEST = 40
_NOTHING = object()


def is_user_function(function: Any) -> bool:
    """Whether a function was written by the user."""
    return isinstance(function, types.FunctionType) and not is_library_code(function.__code__)


def is_user_class(kind: type) -> bool:
    """Whether the user has written a class, or one that it is derived from."""
    return any(not _is_library_class(base) for base in kind.__mro__)


@functools.lru_cache(maxsize=4096)
def _is_library_class(kind: type) -> bool:
    return not kind.__flags__ & _HEAP_TYPE or is_library_class(kind)


def runs_nothing(kind: type) -> bool:
    """Whether making an instance of a user's class runs no code of the user: named tuples, exceptions, dataclasses."""
    if type(kind) not in (type, ABCMeta, enum.EnumMeta):
        return False
    made = (
        name
        for base in kind.__mro__
        for name in ("__new__", "__init__", "__post_init__", "_missing_")
        if name in vars(base)
    )
    if any(is_written(in_class(kind, name)) for name in made):
        return False
    fields: dict[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return not any(is_user_function(field.default_factory) for field in fields.values())


def is_written(function: Any) -> bool:
    """Whether the user has written a function; not, if it was generated for a class."""
    return is_user_function(function) and function.__code__.co_filename != "<string>"


def has_own(kind: type, *names: str) -> bool:
    """Whether a class has methods of these names that are not those of all objects."""
    return any(in_class(kind, name) not in (MISSING, vars(object).get(name)) for name in names)


def note_call(session: Session, function: Any, values: Sequence[Any]) -> None:
    """A function runs as it is. What it looks at is recorded, or the function being read is read in every call."""
    name = getattr(function, "__name__", type(function).__name__)
    if not is_known(session, function):
        session.stop_caching(_why_unknown(function, name))
        return
    full = getattr(function, "__qualname__", name)
    if full in _HOLDING:
        values = [v for v in values if has_own(type(v), "__hash__", "__eq__") and is_user_class(type(v))]
    ours = _module_of(function).startswith("msc.")
    note_looking(session, values, f"'{name}'", takes_callables=ours, shallow=full in _ITERATING)


def _why_unknown(function: Any, name: str) -> str:
    if is_user_function(function) and source_of(function.__code__) is None:
        file = function.__code__.co_filename
        return f"the source of '{name}' in {file} cannot be read, or is not that of this function, so it runs as it is"
    return f"'{name}' runs as it is, and what it looks at is not known"


def _module_of(function: Any) -> str:
    """The module that a function stands in, whatever it says, since those that wrap others take over their names."""
    code = function if isinstance(function, types.FunctionType) else in_class(type(function), "__call__")
    if isinstance(code, types.FunctionType) and is_own_file(code.__code__.co_filename):
        return "msc."
    return str(getattr(function, "__module__", None) or type(function).__module__)


def note_looking(
    session: Session, values: Iterable[Any], what: str, *, takes_callables: bool = False, shallow: bool = False
) -> None:
    """Code that is not read looks at values: at those of no known kind, it may see what is not recorded."""
    for value in values:
        part = unknown_part(session, value, takes_callables, _DEEPEST if shallow else 0)
        if part is not _NOTHING:
            session.stop_caching(f"{what} looks at {described(part)}, which may change without being noticed")
            return


def note_state(session: Session, cell: Any) -> None:
    """The code of a layer of the library runs as it is, and looks at whatever the layer has."""
    session.guards.cell(cell)
    for value in cell.__dict__.values():
        function = value if isinstance(value, types.FunctionType | types.MethodType) else None
        part = unknown_part(session, value, takes_callables=function is None)
        if part is not _NOTHING:
            session.stop_caching(f"{a(type(cell).__name__)} runs {described(part)}")
            return


def described(value: Any) -> str:
    """A value of no known kind, for people."""
    if isinstance(value, types.FunctionType):
        return f"the function '{value.__name__}' as it is"
    kind = value if isinstance(value, type) else type(value)
    return f"the class {kind.__name__}" if isinstance(value, type) else a(kind.__name__)


def unknown_part(session: Session, value: Any, takes_callables: bool = False, depth: int = 0) -> Any:
    """The first part of a value that is of no known kind; of Cells all they have is recorded."""
    kind = type(value)
    if kind in SCALARS or kind is Tensor:
        return _NOTHING
    if isinstance(value, _ALWAYS_KNOWN):
        return (
            value
            if isinstance(value, SCALARS) and is_user_class(kind) and not isinstance(value, enum.Enum)
            else _NOTHING
        )
    if hasattr(kind, "run_construct"):
        if not takes_callables:
            return value
        for _, cell in value.cells_and_names():
            session.guards.cell(cell)
        return _NOTHING
    if kind in (*SEQUENCES, *MAPPINGS, *SETS) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        if depth >= _DEEPEST:
            return _NOTHING
        items = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        found = (unknown_part(session, item, takes_callables, depth + 1) for item in items)
        return next((part for part in found if part is not _NOTHING), _NOTHING)
    if takes_callables and isinstance(value, types.FunctionType | types.MethodType | type):
        return _NOTHING
    if isinstance(value, types.FunctionType | types.MethodType):
        return _NOTHING if is_known(session, value) else value
    if isinstance(value, type):
        return value if is_user_class(value) else _NOTHING
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType | super | np.ufunc):
        return _NOTHING
    if f"{kind.__module__}.{kind.__qualname__}" in _IMMUTABLE_NAMES or kind.__module__.startswith("msc."):
        return _NOTHING
    return _NOTHING if session.journal.is_own(value) and not is_user_class(kind) else value


def is_known(session: Session, function: Any) -> bool:
    """Whether a function depends on its arguments alone: ours do, and what stands under its name in a listed module."""
    if isinstance(function, types.MethodType):
        return is_known(session, function.__func__)
    if isinstance(function, type) and is_user_class(function):
        return runs_nothing(function)
    name = getattr(function, "__qualname__", getattr(function, "__name__", ""))
    receiver = getattr(function, "__self__", None)
    if isinstance(function, types.BuiltinMethodType | types.MethodWrapperType) and not isinstance(
        receiver, types.ModuleType
    ):
        kind = receiver if isinstance(receiver, type) else type(receiver)
        listed = kind.__module__ in _KNOWN_MODULES and name not in _UNKNOWN_FUNCTIONS
        return listed or isinstance(receiver, _ALWAYS_KNOWN) or session.journal.is_own(receiver)
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType | types.ClassMethodDescriptorType):
        return function.__objclass__.__module__ in _KNOWN_MODULES and name not in _UNKNOWN_FUNCTIONS
    module = _module_of(function)
    if module.startswith("msc."):
        return True
    found: Any = sys.modules.get(module) if module in _KNOWN_MODULES and name not in _UNKNOWN_FUNCTIONS else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function
