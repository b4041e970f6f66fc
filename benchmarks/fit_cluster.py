"""Fit a cluster's efficiencies to the published cases of a file, and tell the error on each case left out.

python -m benchmarks.fit_cluster tests/unit/planner/megatron_2021.toml efficiency.matrix link.node
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path

from msc.planner.cases import PlanningCase, PredictedCase, outcome_on, read_cases
from msc.planner.cluster import Cluster, cluster_named

_ROUNDS = 40


def with_figure(cluster: Cluster, name: str, value: float) -> Cluster:
    """The cluster with another figure: `efficiency.NAME`, or `link.NAME` for the efficiency of a link."""
    table, _, key = name.partition(".")
    if table == "efficiency":
        return replace(cluster, efficiency=replace(cluster.efficiency, **{key: value}))
    links = tuple(replace(each, efficiency=value) if each.name == key else each for each in cluster.links)
    return replace(cluster, links=links)


def figure_of(cluster: Cluster, name: str) -> float:
    """The figure of a name."""
    table, _, key = name.partition(".")
    if table == "efficiency":
        return float(getattr(cluster.efficiency, key))
    return next(each.efficiency for each in cluster.links if each.name == key)


def loss(cases: Sequence[PlanningCase], cluster: Cluster) -> float:
    """The sum of squares of logarithms of predicted over published."""
    errors = [outcome_on(case, cluster).error for case in cases]
    return sum(log(1 + error) ** 2 for error in errors if error is not None)


def fitted(
    cases: Sequence[PlanningCase],
    cluster: Cluster,
    names: Sequence[str],
) -> Cluster:
    """The cluster whose named figures fit best: a search along each figure in turn, with shorter and shorter steps."""
    best, step = loss(cases, cluster), 0.1
    for _ in range(_ROUNDS):
        better = False
        for name in names:
            for factor in (1 - step, 1 + step):
                value = figure_of(cluster, name) * factor
                if name != "efficiency.half" and value > 1:
                    continue
                tried = with_figure(cluster, name, value)
                found = loss(cases, tried)
                if found < best:
                    best, cluster, better = found, tried, True
        step = step if better else step / 2
    return cluster


def _line(outcome: PredictedCase) -> str:
    return f"{100 * (outcome.error or 0.0):+5.1f} %"


def main(path: str, *names: str) -> None:
    """Print the fitted figures, and for each case its error when fitted with it and without it."""
    cases = [case for case in read_cases(Path(path)) if case.fitted]
    cluster = cluster_named(cases[0].cluster)
    whole = fitted(cases, cluster, names)
    print(", ".join(f"{name} = {figure_of(whole, name):.3g}" for name in names))
    for case in cases:
        rest = fitted([each for each in cases if each is not case], cluster, names)
        print(f"{case.name:12} fitted {_line(outcome_on(case, whole))}, left out {_line(outcome_on(case, rest))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
