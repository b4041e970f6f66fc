"""The dialects and passes there are, by name, each imported when it is first used."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from xdsl.context import Context
from xdsl.passes import ModulePass

from msc.analysis.properties import PROPERTIES
from msc.backends.backend import Backend
from msc.backends.passes import DIALECTS, PASSES
from msc.backends.registry import context_with, found_backends, named_object
from msc.ir.contracts import Property, contract_of
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

GROUP = "msc.passes"
"""The group of entry points in which a package names its passes."""

UPSTREAM_PURPOSES: dict[str, str] = {
    "canonicalize": "Apply the canonicalization patterns of all operations, and erase unused operations.",
    "cse": "Compute equal operations without side effects once.",
    "dce": "Erase operations without side effects whose results are unused.",
}
"""What the passes of xDSL do, in one line each: their classes do not say it."""


def new_context(backend: Backend | None = None) -> Context:
    """A context that knows every dialect, those of a back end included, and has loaded only `builtin`."""
    return context_with({**DIALECTS, **(backend.dialects if backend is not None else {})})


def load_pass(name: str) -> type[ModulePass]:
    """The class of a pass. Raises MSC0506 for a name in the table of a back end that no pass has."""
    target = PASSES.get(name) or all_passes().get(name)
    if target is None:
        advice = did_you_mean(name, all_passes()) or "a back end names its own passes in `passes`"
        raise MscError(Diagnostic("MSC0506", f"a stage names the pass '{name}', which does not exist", help=advice))
    loaded = named_object("pass", name, target)
    if not isinstance(loaded, type) or not issubclass(loaded, ModulePass) or loaded.name != name:
        raise MscError(Diagnostic("MSC0506", f"'{target}' is not a pass with the name '{name}'"))
    return loaded


def all_passes() -> dict[str, str]:
    """The passes of msc, those that back ends bring, and those of other packages, by name."""
    of_backends = {name: target for backend in found_backends() for name, target in backend.passes.items()}
    return {**_installed(), **of_backends, **PASSES}


@cache
def _installed() -> dict[str, str]:
    """The passes that other packages name in the group of entry points `msc.passes`; they replace none of msc.

    [project.entry-points."msc.passes"]
    count-products = "my_package:CountProducts"
    """
    return {point.name: point.value for point in entry_points(group=GROUP)}


def makers(wanted: Property) -> list[str]:
    """The passes that ensure a property."""
    return [name for name in all_passes() if wanted in contract_of(load_pass(name)).ensures]


def find_property(name: str) -> Property:
    """The property that a stage names: one of `msc.analysis.properties`, or "package.module:NAME". Raises MSC0506."""
    known = {found.name: found for found in PROPERTIES}
    if name not in known and ":" not in name:
        advice = did_you_mean(name, known) or f"they are {', '.join(known)}, or package.module:NAME"
        raise MscError(Diagnostic("MSC0506", f"a stage names the property '{name}', which does not exist", help=advice))
    found = known[name] if name in known else named_object("property", name, name)
    if not isinstance(found, Property):
        raise MscError(Diagnostic("MSC0506", f"'{name}' is not a property"))
    return found
