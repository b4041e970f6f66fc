"""Which options act on which kind of model: one that would change nothing is refused, as it would be believed to.

An option acts when the model is read, in passes that make a stage, or on the C. What comes in at a later stage is past
what acts before it; an artifact is past everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from msc.backends.backend import Backend
from msc.backends.registry import DEFAULT, find_backend
from msc.backends.stage import COMMON, GRAPH, Stage
from msc.formats.format import Format
from msc.formats.registry import format_of, ir_format
from msc.support.diagnostics import Diagnostic, raise_any
from msc.support.streams import is_stream

C = "c"


@dataclass(frozen=True)
class Acts:
    """Where an option acts: in reading files of these formats, in making these stages (`c` is the C)."""

    reading: Callable[[Format], bool] | None = None
    making: Collection[str] = ()


def _every(_: Format) -> bool:
    return True


def _ir(format_: Format) -> bool:
    return format_.holds == "ir"


def acts(backend: Backend) -> Mapping[str, Acts]:
    """Every option that verbs on a MODEL share. `--without` is judged by the passes of each name."""
    for_the_target = tuple(stage.name for stage in backend.table.ir if stage not in COMMON)
    return {
        "--target": Acts(_every),
        "--march": Acts(making=(*for_the_target, C)),
        "--threads": Acts(making=(*for_the_target, C)),
        "--dim": Acts(_every),
        "--input-value": Acts(lambda each: each.fixes_inputs),
        "--max-memory": Acts(making=("opt", "gk", C)),
        "--weights": Acts(_ir),
        "--tuned": Acts(making=_stages_with("apply-tuning", backend)),
        "--without": Acts(_every),
        "--no-winograd": Acts(making=_stages_with("winograd", backend)),
        "--flush-subnormals": Acts(making=(C,)),
        "--check-indices": Acts(making=("opt",)),
        "--mesh": Acts(making=("opt",)),
        "--precision": Acts(making=("opt",)),
        "--from": Acts(_ir),
        "--no-cache": Acts(_every),
        "--name": Acts(making=(C,)),
        "--profile": Acts(making=(C,)),
        "--save-temps": Acts(making=(C,)),
        "--ram-limit": Acts(making=(C,)),
        "--rom-limit": Acts(making=(C,)),
        "--stack-limit": Acts(making=(C,)),
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
    backend = find_backend(DEFAULT) if backend is None else backend
    kind = None if stage is None else _format(model, stage, backend)
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
        if made is not None and does.reading is None and not any(stage in made for stage in does.making)
    ]


def stage_at_start(model: str, start: str | None, backend: Backend | None = None) -> Stage | None:
    """The stage at which a model comes in; None where that is not known, of which its reader tells."""
    table = (find_backend(DEFAULT) if backend is None else backend).table
    if start is not None:
        found = table.named(start)
        return found if found in table.ir else None
    of_stage = table.of_file(model)
    return of_stage if of_stage is not None else GRAPH if is_stream(model) or _reads(format_of(model)) else None


def _format(model: str, stage: Stage, backend: Backend) -> Format:
    """The format of a model that comes in at a stage: files of other formats than msc's own are graphs."""
    found = format_of(model) if stage == GRAPH and backend.table.of_file(model) is None else None
    return found if found is not None and _reads(found) else ir_format()


def _reads(format_: Format | None) -> bool:
    return format_ is not None and format_.holds != "weights"


def _acts(does: Acts, kind: Format | None, left: Collection[str]) -> bool:
    reads = kind is not None and does.reading is not None and does.reading(kind)
    return reads or any(stage in left for stage in does.making)


def _made_after(stage: Stage | None, backend: Backend) -> list[str]:
    """What is still to be made of a model at a stage."""
    return [] if stage is None else [*(s.name for s in backend.table.after(stage)), C]


def _switch_acts(name: str, left: Collection[str], backend: Backend) -> bool:
    switch = backend.all_switches.get(name)
    return switch is None or any(backend.table[stage].has(switch.pass_name) for stage in left if stage != C)


def _idle(option: str, model: str, kind: Format | None, stage: Stage | None, does: Acts | None) -> Diagnostic:
    if stage is None or kind is None:
        reason = f"'{model}' is taken as it is, nothing is compiled"
    elif does is None or does.reading in (None, _every) or does.reading(kind):
        reason = f"'{model}' is at stage '{stage.name}', which is past what the option acts on"
    else:
        reason = f"it is not for {kind.title}"
    return Diagnostic("MSC0014", f"{option} has no effect here: {reason}", help="leave it out")
