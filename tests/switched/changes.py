"""Which optimisations make a difference to a model: only without these is there anything to build."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from msc.backends.registry import find_backend
from msc.backends.stage import PassRun, Stage
from msc.driver.models.reading_models import LoadedModel
from msc.driver.models.target import note_target
from msc.driver.options import CompileOptions
from msc.driver.passes.instances import Changes, changes_of, pass_instances
from msc.driver.passes.pass_manager import PassManager
from msc.driver.size_samples import sample_changes
from msc.graph.shapes.lift_sizes import LiftSizes
from tests.conformance.running import reason

TABLE, SWITCHES = find_backend("cpu").table, find_backend("cpu").all_switches

SECONDS = 600
"""The time limit of a pass."""


@dataclass
class Copy:
    """A model on its way through the passes with some options; `failure` says why a pass failed on it."""

    model: LoadedModel
    options: CompileOptions
    failure: str = ""

    def apply(self, stage: Stage, run: PassRun) -> None:
        """Apply a pass of the table, as it is with these options. Raises what it raises."""
        note_target(self.model, self.options)
        samples: Changes = sample_changes(stage, self.model, self.options) if run.name == LiftSizes.name else {}
        passes = pass_instances((run,), {**changes_of(self.options), **samples})
        PassManager(self.model.context, self.model.sources, verify_each=False).run(self.model.module, passes)

    def try_to_apply(self, stage: Stage, run: PassRun) -> None:
        """Apply a pass unless one has failed already."""
        self.failure = self.failure or reason(lambda: self.apply(stage, run), SECONDS)

    def without(self, name: str) -> Copy:
        """A copy of its own that goes on without an optimisation."""
        model = replace(self.model, module=self.model.module.clone())
        return Copy(model, replace(self.options, without=(name,)))

    def differs(self, other: Copy) -> bool:
        """Whether the modules are not the same text, or one is not there."""
        return bool(self.failure) or str(self.model.module) != str(other.model.module)


def changed(model: LoadedModel, options: CompileOptions, names: Iterable[str]) -> dict[str, Copy]:
    """The model at the loop stage without each of those optimisations that make a difference to the C.

    The model goes through the passes once, and its module with it; beside it go copies, each from the first pass on
    that is another one without its optimisation, as long as their text differs from the model's: right after that pass
    and at the end of a stage. C depends on the last module and nothing else.
    """
    whole, copies = Copy(model, options), dict[str, Copy]()
    for stage, run, is_last in _passes():
        new = {n: whole.without(n) for n in names if n not in copies and SWITCHES[n].pass_name == run.name}
        copies |= new
        for copy in copies.values():
            copy.try_to_apply(stage, run)
        whole.apply(stage, run)
        same = {name for name in (copies if is_last else new) if not copies[name].differs(whole)}
        copies = {name: copy for name, copy in copies.items() if name not in same}
    return {n: replace(copy, model=replace(copy.model, stage=TABLE["loop"])) for n, copy in copies.items()}


def _passes() -> Iterator[tuple[Stage, PassRun, bool]]:
    """All passes of the table with their stages; of each whether it is the last of its stage."""
    for stage in TABLE.ir:
        yield from ((stage, run, number == len(stage.passes)) for number, run in enumerate(stage.passes, 1))
