"""docs/evidence/cost-model.md shows what the model does on the corpus, whose schedules fit their kernels."""

from __future__ import annotations

from benchmarks.cost_model.corpus import corpora
from benchmarks.cost_model.kernels import subjects
from benchmarks.cost_model.report import BEGIN, END, PAGE, tables
from msc.poly.schedule_tree.verify import verify
from msc.targets.catalogue import machine_named


def test_the_tables_are_those_of_the_model() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
    assert shown == tables(), "python -m benchmarks.cost_model --report writes them"


def test_every_schedule_fits_its_kernel() -> None:
    for name, corpus in corpora():
        for subject in subjects(corpus, machine_named(name)):
            assert len(subject.schedules) == len(subject.microseconds)
            for tree in subject.schedules:
                verify(subject.model, tree)
