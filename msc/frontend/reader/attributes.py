"""Attributes of objects: read with a guard if the object comes from outside, written so that it can be undone."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from msc.frontend.parameter import Parameter
from msc.frontend.reader.journal import Attribute, Content, TensorContent
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.source import source_of
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.frontend.reader.frames import Frame
    from msc.frontend.reader.session import Session

_REGISTRIES = ("_cells", "_params")
"""Where a Cell keeps what is assigned to its attributes."""


def load(frame: Frame, owner: Any, name: str) -> Any:
    """`owner.name`."""
    session = frame.session
    if isinstance(owner, RuntimeNumber | Tensor):
        return session.made(getattr(owner, name), (owner,))
    if isinstance(owner, super):
        return getattr(owner, name)
    found = _in_class(owner, name)
    if isinstance(found, property) and found.fget is not None and _is_user_code(found.fget):
        return session.call(frame, found.fget, (owner,), {})
    value = getattr(owner, name)
    if not session.journal.is_own(owner) and not _is_method(value, owner):
        _guard(session, owner, name, value)
    return value


def _in_class(owner: Any, name: str) -> Any:
    if isinstance(owner, type | types.ModuleType) or name in getattr(owner, "__dict__", ()):
        return None
    return next((vars(kind)[name] for kind in type(owner).__mro__ if name in vars(kind)), None)


def _is_user_code(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and source_of(function.__code__) is not None


def _is_method(value: Any, owner: Any) -> bool:
    return isinstance(value, types.MethodType | types.BuiltinMethodType | types.MethodWrapperType) and (
        getattr(value, "__self__", None) is owner
    )


def _guard(session: Session, owner: Any, name: str, value: Any) -> None:
    session.note_outside(value)
    if isinstance(value, Parameter) and not value.is_symbolic:
        session.guards.parameter(value)
    if isinstance(owner, types.ModuleType) and not _is_user_module(owner):
        return
    if not session.is_written(Attribute(owner, name)):
        session.guards.attribute(owner, name, value)


def _is_user_module(module: types.ModuleType) -> bool:
    from msc.frontend.reader.libraries import is_library_file

    file = getattr(module, "__file__", None)
    return file is not None and not is_library_file(file)


def store(frame: Frame, owner: Any, name: str, value: Any) -> None:
    """`owner.name = value`."""
    session = frame.session
    if isinstance(owner, RuntimeNumber):
        raise AttributeError(f"'{owner.kind.__name__}' object has no attribute '{name}'")
    setter = _in_class(owner, name)
    if isinstance(setter, property) and setter.fset is not None and _is_user_code(setter.fset):
        session.call(frame, setter.fset, (owner, value), {})
        return
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
