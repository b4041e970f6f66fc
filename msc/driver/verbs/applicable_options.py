"""Which options act on which kind of model: one that would change nothing is refused, as it would be believed to.

An option acts when the model is read, in passes that make a stage, or on the C. What comes in at a later stage is past
what acts before it; an artifact is past everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from msc.driver.passes.stages import IR_STAGES, STAGE, Stage, stage_of_file
from msc.driver.passes.switches import SWITCHES
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.streams import is_stream

ARTIFACT, ONNX, IR = "an artifact", "an ONNX model", "a .mir file"
C = "c"


@dataclass(frozen=True)
class Acts:
    """Where an option acts: in reading these kinds of models, in making these stages (`c` is the C)."""

    reading: Collection[str] = ()
    making: Collection[str] = ()


def _stages_with(text: str) -> tuple[str, ...]:
    return tuple(stage.name for stage in IR_STAGES if any(text in spec for spec in stage.passes))


_MODELS = (IR, ONNX)
ACTS: Mapping[str, Acts] = {
    "--target": Acts(_MODELS),
    "--march": Acts(making=(*_stages_with("$march"), C)),
    "--threads": Acts(making=(*_stages_with("$threads"), C)),
    "--dim": Acts(_MODELS),
    "--input-value": Acts((ONNX,)),
    "--max-memory": Acts(making=("opt", "gk", C)),
    "--weights": Acts((IR,)),
    "--tuned": Acts(making=_stages_with("$tuned")),
    "--without": Acts(_MODELS),
    "--no-winograd": Acts(making=("gk",)),
    "--flush-subnormals": Acts(making=(C,)),
    "--from": Acts((IR,)),
    "--no-cache": Acts(_MODELS),
    "--name": Acts(making=(C,)),
    "--profile": Acts(making=(C,)),
    "--save-temps": Acts(making=(C,)),
}
"""Every option that verbs on a MODEL share. `--without` is judged by the passes of each name."""


def check_applicable(given: Collection[str], model: str, stage: Stage | None, without: Collection[str] = ()) -> None:
    """Raises one MscError with an MSC0014 for each option that has no effect.

    `given` are options as a person writes them, `stage` is where the model comes in: None for an artifact.
    """
    kind = ARTIFACT if stage is None else ONNX if model.endswith(".onnx") and stage.name == "graph" else IR
    left = _made_after(stage)
    idle = [option for option in given if not _acts(ACTS[option], kind, left)]
    problems = [_idle(option, model, kind, stage) for option in idle]
    if stage is not None:
        late = [name for name in without if name in SWITCHES and not _switch_acts(name, left)]
        problems += [_idle(f"--without {name}", model, kind, stage) for name in late]
    if problems:
        raise MscError(*problems)


def idle_options(given: Collection[str], last: str) -> list[str]:
    """The options that act only on what is made after the stage `last`."""
    made = (*(s.name for s in IR_STAGES[: IR_STAGES.index(STAGE[last]) + 1]),) if last != C else None
    known = [(option, ACTS[option]) for option in given if option in ACTS]
    return [
        option
        for option, acts in known
        if made is not None and not acts.reading and not any(stage in made for stage in acts.making)
    ]


def stage_at_start(model: str, start: str | None) -> Stage | None:
    """The stage at which a model comes in; None where that is not known, of which its reader tells."""
    if start is not None:
        return STAGE.get(start) if STAGE.get(start) in IR_STAGES else None
    return STAGE["graph"] if model.endswith(".onnx") or is_stream(model) else stage_of_file(model)


def _acts(acts: Acts, kind: str, left: Collection[str]) -> bool:
    return kind in acts.reading or any(stage in left for stage in acts.making)


def _made_after(stage: Stage | None) -> list[str]:
    """What is still to be made of a model at a stage."""
    return [] if stage is None else [*(s.name for s in IR_STAGES[IR_STAGES.index(stage) + 1 :]), C]


def _switch_acts(name: str, left: Collection[str]) -> bool:
    return any(SWITCHES[name].passes in _passes(STAGE[stage]) for stage in left if stage != C)


def _passes(stage: Stage) -> Iterator[str]:
    return (spec.partition("{")[0] for spec in stage.passes)


def _idle(option: str, model: str, kind: str, stage: Stage | None) -> Diagnostic:
    if stage is None:
        reason = f"'{model}' is taken as it is, nothing is compiled"
    elif kind in ACTS.get(option, Acts()).reading or option not in ("--input-value", "--weights", "--from"):
        reason = f"'{model}' is at stage '{stage.name}', which is past what the option acts on"
    else:
        reason = f"it is not for {kind}"
    return Diagnostic("MSC0014", f"{option} has no effect here: {reason}", help="leave it out")
