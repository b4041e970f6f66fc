"""Modules of MindSpore's for names that stand elsewhere here: `from msc.nn.layer import Dense`.

Such a module has no file: it stands among those that are imported, and looks its names up where they are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType


class _OldPath(ModuleType):
    """A module whose names are those of another one."""

    def __init__(self, path: str, target: str) -> None:
        super().__init__(path, f"The names of {target}, under a path that MindSpore has.")
        vars(self)["__path__"] = []
        self._target = target

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(import_module(self._target), name)


def old_paths(package: str, target: str, names: str) -> None:
    """Let modules in a package, such as "layer layer.conv", have the names of `target`."""
    for name in names.split():
        path = f"{package}.{name}"
        parent, _, last = path.rpartition(".")
        sys.modules[path] = made = _OldPath(path, target)
        setattr(sys.modules[parent], last, made)
