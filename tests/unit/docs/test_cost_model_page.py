"""The page of the cost model says for each decision where it is made."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ROWS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]*`msc/[^|]+) \|$", (ROOT / "docs/cost-model.md").read_text("utf-8"), re.M
)
COMPARED = re.compile(r"\b(?:machine|target)\.(?:l1|l2|l3)\b|\.prediction\(|\.fastest\(|\bKernelCycles\b")
"""What compares sizes with caches, or asks for predicted cycles."""
ELSEWHERE = {
    "msc/schedule/kernel_cycles.py": "it asks for others",
    "msc/schedule/tuning/neighbours.py": "the tuner, which measures",
    "msc/schedule/prefetching/nest_reads.py": "the question of the prefetches",
    "msc/schedule/tuning/tuned_schedules.py": "it describes a machine",
    "msc/graph_kernel/chain_cycles.py": "what compute-at-consumers compares",
    "msc/graph_kernel/winograd/winograd.py": "it asks winograd_cost",
}


def named() -> set[str]:
    return {file for *_, files in ROWS for file in re.findall(r"`([^`]+)`", files)}


def test_files_of_decisions_exist() -> None:
    assert len(ROWS) > 30
    assert [file for file in named() if not (ROOT / file).is_file()] == []


def test_every_file_that_compares_is_named() -> None:
    folders = ("msc/graph_kernel", "msc/schedule", "msc/lowering")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    found = {str(path.relative_to(ROOT)) for path in files if COMPARED.search(path.read_text("utf-8"))}
    assert found - named() == set(ELSEWHERE)
