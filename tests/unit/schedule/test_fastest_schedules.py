"""The fastest of several schedules is that of the fewest predicted cycles, whether or not all are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from msc.cost.prediction import KernelCost
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.poly.schedule_tree.nodes import Tree
from tests.unit.schedule.tiles.test_reduction_blocks import product


@pytest.mark.parametrize("shape", [(16, 2048, 2048), (256, 512, 512)])
def test_the_fastest_is_that_of_the_fewest_cycles(
    shape: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all that scheduling a product compares: vectors, tiles, orders and blocks."""
    fastest, compared = KernelCost.fastest, list[int]()

    def checked(
        cost: KernelCost, trees: Sequence[Tree], most: float = inf, margins: Sequence[float] | None = None
    ) -> tuple[int, float] | None:
        found = fastest(cost, trees, most, margins)
        every = [cost.prediction(tree, 1).cycles for tree in trees]
        counting = [(margins or [1.0] * len(trees))[k] * cycles for k, cycles in enumerate(every)]
        least = min(range(len(trees)), key=lambda k: counting[k])
        assert found == ((least, every[least]) if counting[least] < most else None)
        compared.append(len(trees))
        return found

    monkeypatch.setattr(KernelCost, "fastest", checked)
    monkeypatch.setattr("msc.support.forked._processors", lambda: 1)
    compile_model(str(product(tmp_path, *shape)), CompileOptions(march="x86-64-v3", threads=2), "loop")
    assert max(compared) > 1
