"""Which options act on which kind of model: one that would change nothing is refused, as it would be believed to.

An option acts when the model is read, in passes that make a stage, or on the C. What comes in at a later stage is past
what acts before it; an artifact is past everything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from msc.backends.backend import Backend
from msc.backends.registry import DEFAULT, find_backend
from msc.backends.stage import COMMON, GRAPH, Stage
from msc.driver.models.onnx_models import is_onnx
from msc.support.diagnostics import Diagnostic, raise_any
from msc.support.streams import is_stream

ARTIFACT, ONNX, IR = "an artifact", "an ONNX model", "a .mir file"
C = "c"


@dataclass(frozen=True)
class Acts:
    """Where an option acts: in reading these kinds of models, in making these stages (`c` is the C)."""

    reading: Collection[str] = ()
    making: Collection[str] = ()


_MODELS = (IR, ONNX)


def acts(backend: Backend) -> Mapping[str, Acts]:
    """Every option that verbs on a MODEL share. `--without` is judged by the passes of each name."""
    for_the_target = tuple(stage.name for stage in backend.table.ir if stage not in COMMON)
    return {
        "--target": Acts(_MODELS),
        "--march": Acts(making=(*for_the_target, C)),
        "--threads": Acts(making=(*for_the_target, C)),
        "--dim": Acts(_MODELS),
        "--input-value": Acts((ONNX,)),
        "--max-memory": Acts(making=("opt", "gk", C)),
        "--weights": Acts((IR,)),
        "--tuned": Acts(making=_stages_with("apply-tuning", backend)),
        "--without": Acts(_MODELS),
        "--no-winograd": Acts(making=_stages_with("winograd", backend)),
        "--flush-subnormals": Acts(making=(C,)),
        "--check-indices": Acts(making=("opt",)),
        "--from": Acts((IR,)),
        "--no-cache": Acts(_MODELS),
        "--name": Acts(making=(C,)),
        "--profile": Acts(making=(C,)),
        "--save-temps": Acts(making=(C,)),
    }


def _stages_with(name: str, backend: Backend) -> tuple[str, ...]:
    return tuple(stage.name for stage in backend.table.ir if stage.has(name))


def check_applicable(
    given: Collection[str],
    model: str,
    stage: Stage | None,
    without: Collection[str] = (),
    backend: Backend | None = None,
) -> None:
    """Raises one MscError with an MSC0014 for each option that has no effect.

    `given` are options as a person writes them, `stage` is where the model comes in: None for an artifact.
    """
    kind = ARTIFACT if stage is None else ONNX if is_onnx(model) and stage.name == "graph" else IR
    backend = find_backend(DEFAULT) if backend is None else backend
    left, known = _made_after(stage, backend), acts(backend)
    idle = [option for option in given if option in known and not _acts(known[option], kind, left)]
    problems = [_idle(option, model, kind, stage, known.get(option)) for option in idle]
    if stage is not None:
        late = [name for name in without if not _switch_acts(name, left, backend)]
        problems += [_idle(f"--without {name}", model, kind, stage, None) for name in late]
    raise_any(problems)


def idle_options(given: Collection[str], last: str, backend: Backend | None = None) -> list[str]:
    """The options that act only on what is made after the stage `last`."""
    backend = find_backend(DEFAULT) if backend is None else backend
    ir, all_acts = [stage.name for stage in backend.table.ir], acts(backend)
    made = ir[: ir.index(last) + 1] if last != C else None
    known = [(option, all_acts[option]) for option in given if option in all_acts]
    return [
        option
        for option, does in known
        if made is not None and not does.reading and not any(stage in made for stage in does.making)
    ]


def stage_at_start(model: str, start: str | None, backend: Backend | None = None) -> Stage | None:
    """The stage at which a model comes in; None where that is not known, of which its reader tells."""
    table = (find_backend(DEFAULT) if backend is None else backend).table
    if start is not None:
        found = table.named(start)
        return found if found in table.ir else None
    return GRAPH if is_onnx(model) or is_stream(model) else table.of_file(model)


def _acts(does: Acts, kind: str, left: Collection[str]) -> bool:
    return kind in does.reading or any(stage in left for stage in does.making)


def _made_after(stage: Stage | None, backend: Backend) -> list[str]:
    """What is still to be made of a model at a stage."""
    return [] if stage is None else [*(s.name for s in backend.table.after(stage)), C]


def _switch_acts(name: str, left: Collection[str], backend: Backend) -> bool:
    switch = backend.all_switches.get(name)
    return switch is None or any(backend.table[stage].has(switch.pass_name) for stage in left if stage != C)


def _idle(option: str, model: str, kind: str, stage: Stage | None, does: Acts | None) -> Diagnostic:
    if stage is None:
        reason = f"'{model}' is taken as it is, nothing is compiled"
    elif (does is not None and kind in does.reading) or option not in ("--input-value", "--weights", "--from"):
        reason = f"'{model}' is at stage '{stage.name}', which is past what the option acts on"
    else:
        reason = f"it is not for {kind}"
    return Diagnostic("MSC0014", f"{option} has no effect here: {reason}", help="leave it out")
