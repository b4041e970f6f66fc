"""The back ends there are: msc's own, and those of installed packages (entry-point group `msc.backends`).

    [project.entry-points."msc.backends"]
    scalar = "scalar_backend:ScalarBackend"

names a subclass of `msc.backends.backend.Backend`, whose `name` is that of the entry point.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from msc.backends.backend import Backend
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

GROUP = "msc.backends"
DEFAULT = "cpu"
"""What is compiled for where nothing else is said."""

_OWN = {
    "cpu": "msc.backends.cpu:CpuBackend",
    "ascend310": "msc.backends.ascend:Ascend310",
    "ascend910a": "msc.backends.ascend:Ascend910A",
    "ascend910b1": "msc.backends.ascend:Ascend910B1",
    "ascend910b3": "msc.backends.ascend:Ascend910B3",
    "ascend950pr": "msc.backends.ascend:Ascend950PR",
}
"""By name, as entry points say it; other packages' are looked for only when another name is asked for."""
_OF_A_BROKEN_MODULE = (
    *(ImportError, SyntaxError, NameError, AttributeError, TypeError, ValueError, LookupError),
    *(ArithmeticError, AssertionError, OSError, RuntimeError),
)
"""What the import of somebody else's module raises by mistake."""
_GIVEN = ("summary", "stages", "forms", "default_machine")
"""What a class gives besides its methods."""


def backend_names() -> tuple[str, ...]:
    """The names of all back ends, msc's own first."""
    return (*_OWN, *sorted(_installed().keys() - _OWN.keys()))


@cache
def find_backend(name: str) -> Backend:
    """The back end of a name. Raises MSC0506 where there is none, or where the package that brings it is broken."""
    found = EntryPoint(name, _OWN[name], GROUP) if name in _OWN else _installed().get(name)
    if found is None:
        known = backend_names()
        all_ = f"the target is {known[0]}" if len(known) == 1 else f"the targets are {', '.join(known)}"
        advice = did_you_mean(name, known) or all_
        raise MscError(Diagnostic("MSC0506", f"there is no target '{name}'", help=advice))
    try:
        loaded = found.load()
    except _OF_A_BROKEN_MODULE as error:
        message = f"the back end '{name}' ({found.value}) cannot be loaded: {error or type(error).__name__}"
        raise MscError(Diagnostic("MSC0506", message)) from error
    return _made(name, found.value, loaded)


def _made(name: str, value: str, loaded: object) -> Backend:
    if not isinstance(loaded, type) or not issubclass(loaded, Backend) or getattr(loaded, "name", None) != name:
        message = f"the back end '{name}' ({value}) is not a subclass of Backend of that name"
        raise MscError(Diagnostic("MSC0506", message))
    missing = sorted({*loaded.__abstractmethods__, *(each for each in _GIVEN if not hasattr(loaded, each))})
    if missing:
        message = f"the back end '{name}' ({value}) does not define {', '.join(missing)}"
        raise MscError(Diagnostic("MSC0506", message, help="docs/adding-a-back-end.md lists what a back end defines"))
    return loaded()


def found_backends() -> tuple[Backend, ...]:
    """All back ends that can be loaded: a broken package of somebody else must not stop the others."""
    found = list[Backend]()
    for name in backend_names():
        with suppress(MscError):
            found.append(find_backend(name))
    return tuple(found)


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def load_object(target: str) -> object:
    """What "package.module:NAME" means. Raises ImportError and AttributeError."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
