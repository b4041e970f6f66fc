"""How often isl and the cost model are asked for the kernels of a network: counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest

from msc.cost.prediction import KernelCost
from msc.cost.traffic import Moved, Nest, Traffic
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.poly import collapsing, dependences, outer_band
from msc.poly.schedule_tree import to_isl
from msc.poly.schedule_tree.nodes import Tree
from msc.schedule import schedule_kernels
from msc.support import forked
from tests.unit.driver.test_scaling import write_model
from tests.unit.schedule.tiles.test_reduction_blocks import product

OPTIONS = CompileOptions(march="x86-64-v3", threads=2)
TREES = 6
"""That isl may make for one kernel: orders that are tried, and what is decided."""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often decisions are made, isl is asked for loops and for trees, and models are collapsed."""
    found = Counter[str]()

    def count(place: object, name: str, what: str) -> None:
        function: Callable[..., object] = getattr(place, name)

        def counted(*given: Any, **named: Any) -> object:
            found[what] += 1
            return function(*given, **named)

        monkeypatch.setattr(place, name, counted)

    monkeypatch.setattr(forked, "_processors", lambda: 1)
    count(schedule_kernels, "decide", "decisions")
    count(outer_band, "_compute", "searches")
    count(to_isl._Builder, "result", "trees")  # pyright: ignore[reportPrivateUsage]
    count(collapsing, "_link", "links")
    return found


def scheduled(model: Path, counts: Counter[str]) -> Counter[str]:
    """What scheduling a model takes."""
    counts.clear()
    collapsing._collapsed_alike.cache_clear()  # pyright: ignore[reportPrivateUsage]
    dependences._of_accesses.cache_clear()  # pyright: ignore[reportPrivateUsage]
    compile_model(str(model), OPTIONS, "loop")
    return Counter(counts)


def convolutions(folder: Path, widths: Sequence[int], groups: int, size: int) -> Path:
    """A model of grouped convolutions with strides, of an image from each width to the next, each kernel another."""
    pairs = list(enumerate(pairwise(widths), 1))
    weights = [f"%w{k}: tensor<{out}x{into // groups}x3x3xf32>" for k, (into, out) in pairs]
    lines = [f'%c{k} = ms.conv2d %y{k - 1}, %w{k} {{pad_mode = "same", group = {groups}}}' for k, _ in pairs]
    lines = [line for k, conv in enumerate(lines, 1) for line in (conv, f"%y{k} = ms.relu %c{k}")]
    model, (first, last) = folder / f"layers_{len(widths)}.mir", (widths[0], widths[-1])
    model.write_text(
        f"func.func @main(%y0: tensor<1x{first}x{size}x{size}xf32>, {', '.join(weights)})"
        f" -> tensor<1x{last}x{size}x{size}xf32> {{\n" + "\n".join(lines) + f"\n"
        f"func.return %y{len(pairs)} : tensor<1x{last}x{size}x{size}xf32>\n}}\n",
        "utf-8",
    )
    return model


@pytest.mark.parametrize("name", ["norm", "convolution"])
def test_equal_layers_take_what_few_of_them_take(name: str, tmp_path: Path, counts: Counter[str]) -> None:
    few, many = (scheduled(write_model(tmp_path, name, layers), counts) for layers in (4, 9))
    assert few["decisions"]
    assert many == few


def test_work_is_in_proportion_to_distinct_kernels(tmp_path: Path, counts: Counter[str]) -> None:
    widths = [16 + 8 * k for k in range(9)]
    none, few, many = (scheduled(convolutions(tmp_path, widths[:n], 8, 20), counts) for n in (2, 5, 9))
    assert many["decisions"] - few["decisions"] <= 4 * (few["decisions"] - none["decisions"]) / 3
    for count in (few, many):
        assert count["searches"] <= count["decisions"]
        assert count["trees"] <= TREES * count["decisions"]


@pytest.mark.parametrize(("groups", "width"), [(4, 32), (32, 32)], ids=["grouped", "depthwise"])
def test_large_images_take_what_small_ones_take(groups: int, width: int, tmp_path: Path, counts: Counter[str]) -> None:
    """What isl does in one search is limited (`MAX_OPERATIONS`), and so are the searches."""
    small, large = (scheduled(convolutions(tmp_path, [width, width], groups, size), counts) for size in (40, 200))
    assert large["searches"] <= small["searches"] <= small["decisions"]
    assert large["trees"] <= TREES * large["decisions"]


@pytest.mark.parametrize("shape", [(16, 2048, 2048), (256, 8192, 384), (256, 512, 512)])
def test_traffic_is_predicted_where_instructions_leave_room(
    shape: tuple[int, int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors, tiles, orders and blocks are those of the fewest predicted cycles, as if all had been predicted."""
    fastest, predicted = KernelCost.fastest, Counter[bool]()

    def checked(
        cost: KernelCost, trees: Sequence[Tree], most: float = inf, margins: Sequence[float] | None = None
    ) -> tuple[int, float] | None:
        traffic = Traffic.of

        def counted(self: Traffic, nests: Sequence[Nest], *given: Any, **named: Any) -> tuple[Moved, ...]:
            predicted.update([True])
            return traffic(self, nests, *given, **named)

        with monkeypatch.context() as inside:
            inside.setattr(Traffic, "of", counted)
            found = fastest(cost, trees, most, margins)
        predicted.update({False: len(trees)})
        every = [cost.prediction(tree, 1).cycles for tree in trees]
        counting = [(margins or [1.0] * len(trees))[k] * cycles for k, cycles in enumerate(every)]
        least = min(range(len(trees)), key=lambda k: counting[k])
        assert found == ((least, every[least]) if counting[least] < most else None)
        return found

    monkeypatch.setattr(KernelCost, "fastest", checked)
    compile_model(str(product(tmp_path, *shape)), OPTIONS, "loop")
    assert predicted[True] < predicted[False]
