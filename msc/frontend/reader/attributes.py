"""Attributes of objects: read with a guard if the object comes from outside, written so that it can be undone."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

from msc.frontend.parameter import Parameter
from msc.frontend.reader import unread
from msc.frontend.reader.guards import MISSING, in_class, is_cell
from msc.frontend.reader.journal import Attribute, Content, TensorContent
from msc.frontend.reader.kinds import SameIdentity
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.tensor import Tensor
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.frontend.reader.frames import Frame
    from msc.frontend.reader.session import Session

_REGISTRIES = ("_cells", "_params")
"""Where a Cell keeps what is assigned to its attributes."""
_IMMUTABLE = 1 << 8
"""Flag of classes whose attributes cannot be replaced: those that C defines."""


def load(frame: Frame, owner: Any, name: str) -> Any:
    """`owner.name`. Raises AttributeError, which is recorded too: the attribute may come."""
    session = frame.session
    if isinstance(owner, RuntimeNumber):
        return session.made(getattr(owner, name), (owner,))
    if isinstance(owner, Tensor):
        return _of_tensor(session, owner, name)
    if isinstance(owner, super):
        return _of_base(frame, owner, name)
    if isinstance(owner, type | types.ModuleType):
        return _guarded(session, owner, name)
    kind = type(owner)
    if unread.is_user_function(in_class(kind, "__getattribute__")):
        session.stop_caching(f"'__getattribute__' of {a(kind.__name__)} decides what its attributes are")
        return getattr(owner, name)
    found = in_class(kind, name)
    is_data = hasattr(type(found), "__set__")
    own_state = getattr(owner, "__dict__", {})
    if found is MISSING or (name in own_state and not is_data):
        if name not in own_state and unread.is_user_function(in_class(kind, "__getattr__")):
            return _by_fallback(frame, owner, name)
    elif isinstance(found, property) and unread.is_user_function(found.fget):
        of_class(session, kind, name, found)
        session.guards.class_of(owner)
        return session.call(frame, found.fget, (owner,), {})
    elif isinstance(found, functools.cached_property) and unread.is_user_function(found.func):
        of_class(session, kind, name, found)
        store(frame, owner, name, session.call(frame, found.func, (owner,), {}))
        return owner.__dict__[name]
    elif unread.is_user_function(in_class(type(found), "__get__")) and not isinstance(found, types.FunctionType):
        of_class(session, kind, name, found)
        of_class(session, type(found), "__get__", in_class(type(found), "__get__"))
        return session.call(frame, type(found).__get__, (found, owner, kind), {})
    return _guarded(session, owner, name)


def of_class(session: Session, kind: type, name: str, found: Any) -> None:
    """What a class defines, or does not define, matters."""
    if not kind.__flags__ & _IMMUTABLE and not session.journal.is_own(kind):
        session.guards.of_class(kind, name, found, is_counted=hasattr(kind, "run_construct"))


def _of_tensor(session: Session, owner: Tensor, name: str) -> Any:
    value = session.made(getattr(owner, name), (owner,))
    if name in vars(owner) and name not in ("content", "version") and not session.journal.is_own(owner):
        _guard(session, owner, name, value)
    return value


def _of_base(frame: Frame, owner: Any, name: str) -> Any:
    """`super().name`."""
    session = frame.session
    target: Any = owner.__self__
    kind = owner.__self_class__
    rest = kind.__mro__[kind.__mro__.index(owner.__thisclass__) + 1 :]
    found: Any = next((vars(base)[name] for base in rest if name in vars(base)), MISSING)
    base = next((b for b in rest if name in vars(b)), None)
    session.guards.order_of(kind)
    if base is not None:
        of_class(session, base, name, found)
    if isinstance(found, property) and unread.is_user_function(found.fget) and not isinstance(target, type):
        return session.call(frame, found.fget, (target,), {})
    return getattr(owner, name)


def _by_fallback(frame: Frame, owner: Any, name: str) -> Any:
    """What the class's own `__getattr__` gives, which is read."""
    session = frame.session
    if not session.journal.is_own(owner):

        def read() -> Any:
            return inspect.getattr_static(owner, name, MISSING)

        what = f"the attribute '{name}' of {a(type(owner).__name__)}"
        session.guards.add((id(owner), "." + name), what, read, SameIdentity(MISSING), kept=owner)
    fallback = in_class(type(owner), "__getattr__")
    of_class(session, type(owner), "__getattr__", fallback)
    return session.call(frame, fallback, (owner, name), {})


def _guarded(session: Session, owner: Any, name: str) -> Any:
    try:
        value = getattr(owner, name)
    except AttributeError:
        _guard(session, owner, name, MISSING)
        raise
    if not session.journal.is_own(owner):
        _guard(session, owner, name, value)
    elif name not in getattr(owner, "__dict__", ()) and not isinstance(owner, type):
        of_class(session, type(owner), name, in_class(type(owner), name))
    return value


def _guard(session: Session, owner: Any, name: str, value: Any) -> None:
    if value is not MISSING:
        session.note_outside(value)
    if isinstance(value, Parameter) and not value.is_symbolic:
        session.guards.parameter(value)
    kind = owner if isinstance(owner, type) else type(owner)
    if kind.__flags__ & _IMMUTABLE and not hasattr(owner, "__dict__"):
        return
    if not session.is_written(Attribute(owner, name)):
        session.guards.attribute(owner, name, value, is_counted=_is_counted(owner, name))


def _is_counted(owner: Any, name: str) -> bool:
    """Whether a Cell counts what would change an attribute: no code gives it that may look elsewhere."""
    if not is_cell(owner):
        return False
    return not isinstance(in_class(type(owner), name), property) and not hasattr(
        type(in_class(type(owner), name)), "__set__"
    )


def store(frame: Frame, owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`."""
    session = frame.session
    if isinstance(owner, RuntimeNumber):
        raise AttributeError(f"'{owner.kind.__name__}' object has no attribute '{name}'")
    kind = type(owner)
    setter = in_class(kind, name)
    if isinstance(setter, property) and unread.is_user_function(setter.fset):
        of_class(session, kind, name, setter)
        session.call(frame, setter.fset, (owner, value), {})
        return
    if unread.is_user_function(in_class(kind, "__setattr__")) or unread.is_user_function(
        in_class(type(setter), "__set__")
    ):
        session.stop_caching(f"code of {a(kind.__name__)} runs when its attribute '{name}' is written")
    note(session, owner, name)
    setattr(owner, name, value)


def note(session: Session, owner: Any, name: str) -> None:
    """An attribute is about to be written."""
    session.journal.note(Attribute(owner, name))
    state = getattr(owner, "__dict__", {})
    for registry in _REGISTRIES:
        if isinstance(state.get(registry), dict):
            session.journal.note(Content(state[registry]))
            parameter = state[registry].get(name)
            if isinstance(parameter, Tensor):
                session.journal.note(TensorContent(parameter))


def delete(session: Session, owner: Any, name: str) -> None:
    """`del owner.name`."""
    note(session, owner, name)
    delattr(owner, name)
