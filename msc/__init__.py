"""msc: a MindSpore-style multi-level compiler for neural networks, built on xDSL.

`import msc` loads nothing heavy: each public name imports its module at first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msc.driver.api import compile
    from msc.runtime.artifact import CompiledModel, load
    from msc.support.diagnostics import Diagnostic, Location, MscError

__all__ = ["CompiledModel", "Diagnostic", "Location", "MscError", "compile", "load"]

__version__ = "0.1.0"

_EXPORTS: dict[str, tuple[str, str]] = {
    "CompiledModel": ("msc.runtime.artifact", "CompiledModel"),
    "Diagnostic": ("msc.support.diagnostics", "Diagnostic"),
    "Location": ("msc.support.diagnostics", "Location"),
    "MscError": ("msc.support.diagnostics", "MscError"),
    "compile": ("msc.driver.api", "compile"),
    "load": ("msc.runtime.artifact", "load"),
}
"""Public name -> (module, attribute)."""


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'msc' has no attribute '{name}'")
    module, attribute = _EXPORTS[name]
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
