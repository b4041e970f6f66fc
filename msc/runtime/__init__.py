"""Level 3: finds the C compiler, builds, loads, calls and times compiled models. Never sees IR.

Programs for MindSpore find its `runtime` here, whose names stand in `msc.frontend.devices`.
"""

from importlib import import_module


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("msc.frontend.devices"), name)
