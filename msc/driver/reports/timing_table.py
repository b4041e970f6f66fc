"""`--timing`: what each step of a compilation took, and each stage in sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msc.driver.compile import Step


def timing_table(steps: Sequence[Step]) -> str:
    """One line a step, one a stage and one for all, in milliseconds."""
    lines = [f"{'stage':<10}{'step':<24}{'ms':>10}"]
    for stage in dict.fromkeys(step.stage for step in steps):
        members = [step for step in steps if step.stage == stage]
        lines += [f"{stage:<10}{step.name:<24}{step.seconds * 1e3:>10.2f}" for step in members]
        lines.append(f"{stage:<10}{'':<24}{_milliseconds(members):>10.2f} in all")
    lines.append(f"{'total':<34}{_milliseconds(steps):>10.2f}")
    return "\n".join(lines)


def _milliseconds(steps: Sequence[Step]) -> float:
    return sum(step.seconds for step in steps) * 1e3
