"""Predicted against published times of a list of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from msc.backends.simulation.case_files import Case, case_kernel
from msc.backends.simulation.kernels import arguments_of
from msc.codegen.davinci.simulate import DEFAULTS, SimulationOptions, simulate_kernel
from msc.ir.verification import verify_module
from msc.support.diagnostics import MscError
from msc.support.escaping import table_text


@dataclass(frozen=True)
class CaseOutcome:
    """A case and what the simulator says of it, by the names of `SimulationResult.to_json`.

    A case that cannot be simulated predicts nothing; `refused` says why.
    """

    case: Case
    predicted: dict[str, object]
    refused: MscError | None = None

    def number(self, key: str) -> float | None:
        """A predicted figure."""
        value = self.predicted.get(key)
        return float(value) if isinstance(value, int | float) else None

    def error(self, key: str) -> float | None:
        """Predicted by published, less one; None where either is missing."""
        published, predicted = self.case.published.get(key), self.number(key)
        return predicted / published - 1 if published and predicted is not None else None

    def to_json(self) -> dict[str, object]:
        """As `msc sim --cases --json` writes it."""
        errors = {key: self.error(key) for key in self.case.published if self.error(key) is not None}
        return {
            "name": self.case.name,
            "target": self.case.target,
            "op": self.case.op,
            "predicted": self.predicted,
            "published": dict(self.case.published),
            "error": errors,
            "fitted": sorted(self.case.fitted),
            **({"refused": [f"{d.code}: {d.message}" for d in self.refused.diagnostics]} if self.refused else {}),
        }


def run_case(case: Case, options: SimulationOptions = DEFAULTS) -> CaseOutcome:
    """Simulate a case: its time, and with `functional` what it computes, if it computes. Its own L2 goes before.

    A mistake in it does not stop the other cases: the outcome holds it, with the case's name.
    """
    try:
        kernel = case_kernel(case)
        verify_module(ModuleOp([kernel]))
        options = replace(options, functional=options.functional and case.computes, l2=case.l2 or options.l2)
        data = arguments_of(kernel) if options.functional else []
        return CaseOutcome(case, simulate_kernel(kernel, options, data).to_json())
    except MscError as error:
        note = f"in the case '{case.name}' for {case.target}"
        return CaseOutcome(case, {}, MscError(*(replace(d, notes=(*d.notes, note)) for d in error.diagnostics)))


def timed_cases(outcomes: Sequence[CaseOutcome]) -> list[CaseOutcome]:
    """The cases that have both a published and a predicted task time."""
    return [o for o in outcomes if o.error("task_us") is not None]


def same_order(outcomes: Sequence[CaseOutcome]) -> bool:
    """Whether the cases with a published task time come in the same order by prediction."""
    timed = timed_cases(outcomes)
    by_published = sorted(timed, key=lambda o: o.case.published["task_us"])
    by_predicted = sorted(timed, key=lambda o: o.number("task_us") or 0.0)
    return [o.case.name for o in by_published] == [o.case.name for o in by_predicted]


def errors_text(outcomes: Sequence[CaseOutcome]) -> str:
    """How far off task times are: of rows that figures of the machine were fitted on, and of all others."""
    lines: list[str] = []
    timed = timed_cases(outcomes)
    for what, rows in (
        ("rows with a figure that was fitted", [o for o in timed if o.case.fitted]),
        ("rows that nothing was fitted on", [o for o in timed if not o.case.fitted]),
    ):
        if rows:
            errors = [abs(o.error("task_us") or 0.0) for o in rows]
            lines.append(
                f"{len(rows)} {what}: mean error of the task time {100 * sum(errors) / len(errors):.1f} %, "
                f"largest {100 * max(errors):.1f} %"
            )
    return "\n".join(lines)


def case_table(outcomes: Sequence[CaseOutcome]) -> str:
    """The table that a person reads: task time, then each pipe that has a published time."""
    rows = list[Sequence[str]]()
    for o in outcomes:
        if o.refused is not None:
            rows.append((o.case.name, f"error[{o.refused.diagnostics[0].code}]", *[""] * (1 + len(_KEYS))))
            continue
        predicted = [_figure(o.number(key)) for key in _KEYS]
        rows.append((o.case.name, "predicted", *predicted, str(o.predicted["binding_pipe"])))
        if o.case.published:
            fitted = "fitted" if o.case.fitted else ""
            rows.append((fitted, "published", *[_figure(o.case.published.get(key)) for key in _KEYS], ""))
            errors = [o.error(key) for key in _KEYS]
            rows.append(("", "error", *["" if e is None else f"{100 * e:+.1f}%" for e in errors], ""))
    return table_text(("case", "", "task us", *_PIPES, "binding"), rows)


_PIPES = ("mac", "scalar", "mte1", "mte2", "mte3", "fixpipe", "vec")
_KEYS = ("task_us", *(f"{pipe}_us" for pipe in _PIPES))


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}" if value < 1e4 else f"{value:.0f}"
