"""Running cases: each with a time limit, and what came of it as a plain record."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msc.support.diagnostics import MscError
from tests.conformance.backend import Executor, MscBackend, MscRep
from tests.conformance.suite import Case, classes
from tests.time_limit import OutOfTime, time_limit


@dataclass(frozen=True)
class Outcome:
    """What came of a case; `bound` are the inputs on whose values the compiled model was specialised."""

    name: str
    kind: str
    passed: bool
    reason: str
    classes: tuple[str, ...]
    bound: tuple[str, ...]
    seconds: float


def run_cases(cases: Sequence[Case], executor: Executor, seconds: int) -> Iterator[Outcome]:
    """Run cases one after another."""
    MscBackend.executor = executor
    for case in cases:
        MscBackend.prepared = None
        started = time.perf_counter()
        why = reason(case.run, seconds)
        bound = _bound_inputs()
        taken = time.perf_counter() - started
        yield Outcome(case.name, case.kind, why == "", why, tuple(sorted(classes(case))), bound, taken)


def _bound_inputs() -> tuple[str, ...]:
    prepared: MscRep | None = MscBackend.prepared
    return () if prepared is None else tuple(sorted(prepared.model.bound))


def reason(run: Callable[[], None], seconds: int) -> str:
    """Why a case fails, in a line; empty if it passes. Whatever it raises is the answer that is wanted."""
    try:
        with warnings.catch_warnings(), time_limit(seconds):
            warnings.simplefilter("ignore")
            run()
    except MscError as error:
        return " ".join(
            f"{d.code}: {d.message}{' ' + '; '.join(d.notes) if d.notes else ''}" for d in error.diagnostics[:2]
        )[:300]
    except (Exception, SystemExit, OutOfTime) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    return ""
