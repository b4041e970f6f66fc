"""Pipelines as objects: instances of passes with typed options, made of the runs that a stage names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from msc.backends.backend import Backend
from msc.backends.stage import PassRun
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import load_pass
from msc.support.diagnostics import Diagnostic, MscError

Changes = Mapping[str, Mapping[str, object] | None]
"""For passes by name, the options that a compilation gives them; None leaves the pass out."""


def pass_instances(runs: Sequence[PassRun], changes: Changes) -> tuple[ModulePass, ...]:
    """The passes of a stage, for one compilation. Raises MSC0402 for an option that a pass does not have."""
    chosen = ((run, changes.get(run.name, {})) for run in runs)
    return tuple(_instance(run, change) for run, change in chosen if change is not None)


def _instance(run: PassRun, change: Mapping[str, object]) -> ModulePass:
    try:
        return load_pass(run.name)(**{**run.options, **change})
    except (TypeError, ValueError) as error:
        raise MscError(Diagnostic("MSC0402", f"{run.name}: {error}")) from error


def changes_of(options: CompileOptions) -> dict[str, Mapping[str, object] | None]:
    """What the options of a compilation change in its pipelines."""
    tuned = {} if options.tuned is None else {"apply-tuning": {"file": str(options.tuned)}}
    return {**tuned, "fit-memory": {"limit": options.memory}, **without(options.backend, options.without)}


def without(backend: Backend, names: Sequence[str]) -> Changes:
    """What turning optimisations off changes."""
    changes = dict[str, Mapping[str, object] | None]()
    for switch in (backend.all_switches[name] for name in names):
        before = changes.get(switch.pass_name, {})
        changes[switch.pass_name] = {**before, **switch.options} if before is not None and switch.options else None
    return changes
