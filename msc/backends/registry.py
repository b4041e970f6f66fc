"""The back ends there are: msc's own, and those of installed packages (entry-point group `msc.backends`).

    [project.entry-points."msc.backends"]
    scalar = "scalar_backend:ScalarBackend"

names a subclass of `msc.backends.backend.Backend`, whose `name` is that of the entry point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from msc.backends.backend import Backend
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.plugins import Plugins

if TYPE_CHECKING:
    from xdsl.context import Context
    from xdsl.ir import Dialect

DEFAULT = "cpu"
"""What is compiled for where nothing else is said."""

SIMULATED = "ascend910b1"
"""What `msc sim` simulates where nothing else is said."""

BACKENDS = Plugins(
    group="msc.backends",
    what="back end",
    code="MSC0506",
    own={
        "cpu": "msc.backends.cpu:CpuBackend",
        "ascend310": "msc.backends.ascend:Ascend310",
        "ascend910a": "msc.backends.ascend:Ascend910A",
        "ascend910b1": "msc.backends.ascend:Ascend910B1",
        "ascend910b3": "msc.backends.ascend:Ascend910B3",
        "ascend950pr": "msc.backends.ascend:Ascend950PR",
    },
    base=lambda: Backend,
    given=("summary", "stages", "forms", "default_machine"),
    page="docs/adding-a-back-end.md",
)


def backend_names() -> tuple[str, ...]:
    """The names of all back ends, msc's own first."""
    return BACKENDS.names()


def find_backend(name: str) -> Backend:
    """The back end of a name. Raises MSC0506 where there is none, or where the package that brings it is broken."""
    return BACKENDS.find(name, "target")


def found_backends() -> tuple[Backend, ...]:
    """All back ends that can be loaded."""
    return BACKENDS.found()


def context_with(dialects: Mapping[str, str]) -> Context:
    """A context that knows dialects by name, and has loaded only `builtin`."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin

    context = Context()
    context.load_dialect(Builtin)
    for name, target in dialects.items():
        context.register_dialect(name, dialect_factory(target))
    return context


def dialect_factory(target: str) -> Callable[[], Dialect]:
    """What imports the dialect at "module:attribute" when it is called. Raises MSC0506 then, where there is none."""

    def load() -> Dialect:
        from xdsl.ir import Dialect

        dialect = named_object("dialect", target.partition(":")[2], target)
        if not isinstance(dialect, Dialect):
            raise MscError(Diagnostic("MSC0506", f"'{target}' is not a dialect"))
        return dialect

    return load


def named_object(kind: str, name: str, target: str) -> object:
    """What "package.module:NAME" means. Raises MSC0506 where it means nothing."""
    try:
        return load_object(target)
    except (ImportError, AttributeError) as error:
        raise MscError(Diagnostic("MSC0506", f"the {kind} '{name}' ({target}) cannot be loaded: {error}")) from error


def load_object(target: str) -> object:
    """What "package.module:NAME" means. Raises ImportError and AttributeError."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)
