"""What `msc parallel plan` prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

from msc.planner.cases import cases_text, predict, read_cases
from msc.support.outputs import OutputGuard, OutputSet

_MARK = '{\n  "generator": "msc parallel plan"'


def cases_report(path: Path, json_out: str | None, force: bool) -> str:
    """The text to print for a file of cases; `json_out` names the file for JSON, `-` prints it instead.

    Raises MSC1120 to MSC1124, and MSC0004, MSC0010 and MSC0011 for a file that cannot be written.
    """
    outcomes = [predict(case, path.parent) for case in read_cases(path)]
    figures: dict[str, object] = {"generator": "msc parallel plan", "cases": [each.to_json() for each in outcomes]}
    written = _written(figures, json_out, OutputGuard((path,), force))
    return cases_text(outcomes) if written is None else written


def _written(figures: dict[str, object], out: str | None, guard: OutputGuard) -> str | None:
    """The JSON to print instead of text, if it is wanted there."""
    if out is None:
        return None
    text = json.dumps(figures, indent=2) + "\n"
    if out == "-":
        return text
    with OutputSet(guard) as files:
        files.write(Path(out), text, is_plan)
    return None


def is_plan(path: Path) -> bool:
    """Whether a file has figures of a plan. Raises OSError."""
    with path.open(encoding="utf-8") as file:
        return file.read(len(_MARK)) == _MARK
