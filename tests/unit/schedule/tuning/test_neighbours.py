"""The trees next to a tree: legal by isl's proof, the same ones each time, and each computes what the kernel means."""

from pathlib import Path

import pytest

from msc.backends.registry import find_backend
from msc.cost.prediction import predict
from msc.cost.statement_loops import statement_loops
from msc.driver.compile import compile_read
from msc.driver.models.reading_models import LoadedModel
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.driver.reports.benchmark import Workload
from msc.driver.tuner.tuning import KernelSearch, searches
from msc.driver.tuner.variants import time_schedules, variants_module
from msc.poly.schedule_tree.text import from_lines, to_lines
from msc.schedule.schedule_kernels import illegal
from msc.targets.catalogue import machine_named

TABLE = find_backend("cpu").table

MODELS = {
    "matmul": """func.func @main(%a: tensor<7x19xf32>, %b: tensor<19x37xf32>, %c: tensor<37xf32>) -> tensor<7x37xf32> {
      %0 = ms.matmul %a, %b
      %1 = ms.add %0, %c
      %2 = ms.relu %1
      func.return %2 : tensor<7x37xf32>
    }""",
    "large_matmul": """func.func @main(%a: tensor<523x517xf32>, %b: tensor<517x519xf32>) -> tensor<523x519xf32> {
      %0 = ms.matmul %a, %b
      func.return %0 : tensor<523x519xf32>
    }""",
    "batch_matmul": """func.func @main(%a: tensor<3x5x8xf64>, %b: tensor<3x8x6xf64>) -> tensor<3x5x6xf64> {
      %0 = ms.batch_matmul %a, %b
      func.return %0 : tensor<3x5x6xf64>
    }""",
    "conv2d": """func.func @main(%x: tensor<1x3x9x11xf32>, %w: tensor<5x3x3x3xf32>) -> tensor<1x5x7x9xf32> {
      %0 = ms.conv2d %x, %w {pad_mode = "valid"}
      %1 = ms.relu %0
      func.return %1 : tensor<1x5x7x9xf32>
    }""",
    "softmax": """func.func @main(%x: tensor<6x21xf32>) -> tensor<6x21xf32> {
      %0 = ms.softmax %x
      func.return %0 : tensor<6x21xf32>
    }""",
    "transpose": """func.func @main(%x: tensor<2x18x35xf32>) -> tensor<35x18x2xf32> {
      %0 = ms.transpose %x {perm = [2, 1, 0]}
      func.return %0 : tensor<35x18x2xf32>
    }""",
    "columns": """func.func @main(%x: tensor<24x35xi32>) -> tensor<35xi32> {
      %0 = ms.reduce_sum %x {axis = [0]}
      func.return %0 : tensor<35xi32>
    }""",
    "winograd": """func.func @main(%x: tensor<1x16x32x32xf32>, %w: tensor<16x16x3x3xf32>) -> tensor<1x16x32x32xf32> {
      %0 = ms.conv2d %x, %w {pad_mode = "same"}
      func.return %0 : tensor<1x16x32x32xf32>
    }""",
    "gather": """func.func @main(%x: tensor<9x20xf32>, %i: tensor<4xi64>) -> tensor<4x20xf32> {
      %0 = ms.gather %x, %i {axis = 0}
      func.return %0 : tensor<4x20xf32>
    }""",
}
BUILT = 10
"""Neighbours that are built and run: evenly taken from all."""


def search_of(name: str, threads: int, folder: Path) -> KernelSearch:
    path = folder / f"{name}.mir"
    path.write_text(MODELS[name], "utf-8")
    options = CompileOptions(march="x86-64-v3", threads=threads)
    found = searches(str(path), options, Workload({}, warm_up=1, seconds=0.0))
    return max(found, key=lambda search: search.neighbourhood.model.points)


@pytest.mark.parametrize(
    ("name", "threads"), [*((name, 1) for name in MODELS if name != "winograd"), ("matmul", 2), ("softmax", 2)]
)
def test_neighbours_are_legal_and_compute_the_same(
    name: str, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = search_of(name, threads, tmp_path)
    space, start = search.neighbourhood, search.start
    trees = list(space.of(start))
    texts = [tuple(to_lines(tree)) for tree in trees]
    assert texts == [tuple(to_lines(tree)) for tree in space.of(start)]
    assert len(set(texts)) == len(texts)
    assert tuple(to_lines(start)) not in texts
    for tree, lines in zip(trees, texts, strict=True):
        assert illegal(space.model, space.deps, tree) is None
        assert from_lines(lines) == tree
        assert predict(space.model, tree, space.target, threads).cycles > 0
    chosen = trees[:: max(1, len(trees) // BUILT)]
    times = time_schedules(search.subject, [start, *chosen], 0.0)
    wrong = [to_lines(tree) for tree, time in zip([start, *chosen], times, strict=True) if not time.agrees]
    assert not wrong


def test_nodes_that_do_not_share_the_band_keep_their_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms of Winograd's algorithm run in blocks of rows, below whose loop each part has a band of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = search_of("winograd", 1, tmp_path)
    space = search.neighbourhood
    near = list(space.of(search.start))
    assert near
    for tree in near:
        for each in statement_loops(tree).values():
            assert all(each.statement in tree.axis(loop.axis).dims for loop in each.around)


def test_the_second_step_goes_on_from_a_neighbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = search_of("matmul", 1, tmp_path)
    space = search.neighbourhood
    near = list(space.of(search.start))
    known = {tuple(to_lines(tree)) for tree in (search.start, *near)}
    farther = {tuple(to_lines(tree)) for tree in space.of(near[0])}
    assert farther - known


def test_each_tree_is_built_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = search_of("matmul", 1, tmp_path)
    trees = list(search.neighbourhood.of(search.start))[:4]
    module = variants_module(search.subject.kernel, trees)
    model = LoadedModel("variants", module, TABLE["gk"], tmp_path, {}, new_context())
    compilation = compile_read(model, search.subject.options)
    functions = [op for op in compilation.module.ops if "loop.schedule" in op.attributes]
    assert len(functions) == len(trees)


def test_predictions_prefer_vectors_and_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    search = search_of("matmul", 1, tmp_path)
    model, target = search.neighbourhood.model, machine_named("x86-64-v3")
    axes = ["axis m 7: S0.0 S1.0 S2.0", "axis n 37: S0.1 S1.1 S2.1", "axis k 19: S1.2"]
    scalar = from_lines([*axes, "for m, n", "  run S0", "  for k", "    run S1", "  run S2"])
    assert predict(model, search.start, target, 1).cycles * 4 < predict(model, scalar, target, 1).cycles


@pytest.mark.parametrize("name", MODELS)
def test_of_each_kind_there_are_some_of_all(name: str, tmp_path: Path) -> None:
    search = search_of(name, 2, tmp_path)
    everything = [to_lines(tree) for tree in search.neighbourhood.of(search.start)]
    few = [to_lines(tree) for tree in search.neighbourhood.of_each_kind(search.start, 2)]
    assert 0 < len(few) <= min(12, len(everything))
    assert all(lines in everything for lines in few)
