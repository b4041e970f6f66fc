"""The corpus of the cost model: schedules fit kernels. `python -m benchmarks.cost_model --report` shows the figures."""

from __future__ import annotations

from benchmarks.cost_model.corpus import corpora
from benchmarks.cost_model.kernels import subjects
from msc.poly.schedule_tree.verify import verify
from msc.targets.catalogue import machine_named


def test_every_schedule_fits_its_kernel() -> None:
    for name, corpus in corpora():
        for subject in subjects(corpus, machine_named(name)):
            assert len(subject.schedules) == len(subject.microseconds)
            for tree in subject.schedules:
                verify(subject.model, tree)
