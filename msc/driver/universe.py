"""Our dialects and passes for xDSL's own tools (`xdsl-opt`, `xdsl-gui`), which find them by an entry point."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass
from xdsl.universe import Universe

from msc.backends.passes import DIALECTS, PASSES
from msc.backends.registry import dialect_factory
from msc.driver.passes.registry import load_pass


def _pass_factory(name: str) -> Callable[[], type[ModulePass]]:
    return lambda: load_pass(name)


MSC = Universe(
    all_dialects={name: dialect_factory(target) for name, target in DIALECTS.items() if target.startswith("msc.")},
    all_passes={name: _pass_factory(name) for name, target in PASSES.items() if target.startswith("msc.")},
)
"""Only what is ours: a name that xDSL has too would stop its tools."""
