"""Layouts of operators: rules from compute definitions, costs, and searches that find what there is to be found."""

import itertools
import json
import random
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.driver.reports.parallel_plans import read_graph, read_module
from msc.parallel.mesh import Mesh
from msc.planner.cluster import cluster_named
from msc.planner.elimination import ChoiceProblem, solve
from msc.planner.layout_costs import LayoutCosts
from msc.planner.layout_search import MODES, dynamic_programming, recursive_programming, search, sharding_propagation
from msc.planner.model_plan import GraphWish, mesh_of, plan_graph
from msc.planner.operators import CutAxis, GraphOperator, MatrixWork, OperatorGraph, TensorSize, Use
from msc.planner.pipeline import simulate
from msc.planner.stages import plan_model
from msc.planner.strategies import Strategy, read_strategies, strategies_text, with_strategies
from msc.support.diagnostics import MscError

CARDS = cluster_named("ascend910b-8")
EIGHT = Mesh.of(a=2, b=2, c=2)


def graph_of_text(folder: Path, arguments: str, body: str, result: str, parameters: str = "") -> OperatorGraph:
    """The graph of a function whose last operation gives its result."""
    path = folder / "model.mir"
    last = body.strip().splitlines()[-1].split(" = ")[0]
    function = f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return {last} : {result}\n}}"
    path.write_text(f"builtin.module {{\n{parameters}\n{function}\n}}\n")
    return read_graph(read_module(str(path), {}))


class Drawn:
    """Graphs of products and element-wise operators on square matrices."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def graph(self, operators: int) -> OperatorGraph:
        sizes = [self.random.choice((64, 256, 1024, 4096)) for _ in range(3)]
        graph = OperatorGraph([TensorSize("x", (sizes[0], sizes[0]))], [])
        made = [0]
        for number in range(operators):
            kind = self.random.choice(("matmul", "matmul", "add", "relu"))
            source = self.random.choice(made[-3:])
            rows, columns = graph.tensors[source].shape
            if kind == "matmul":
                width = self.random.choice(sizes)
                graph.tensors.append(TensorSize(f"w{number}", (columns, width), parameter=True))
                axes = CutAxis("i", rows), CutAxis("k", columns, "reduced"), CutAxis("j", width)
                uses = Use(source, (0, 1)), Use(len(graph.tensors) - 1, (1, 2))
                result, work = (0, 2), (MatrixWork((0,), (2,), (1,)),)
                shape = rows, width
            else:
                alike = [t for t in made if graph.tensors[t].shape == (rows, columns)]
                others = [self.random.choice(alike)] if kind == "add" else []
                axes = CutAxis("i", rows), CutAxis("j", columns)
                uses = tuple(Use(tensor, (0, 1)) for tensor in (source, *others))
                result, work, shape = (0, 1), (), (rows, columns)
            graph.tensors.append(TensorSize(f"t{number}", shape))
            made.append(len(graph.tensors) - 1)
            graph.operators.append(GraphOperator(f"op{number}", kind, axes, uses, Use(made[-1], result), work))
        return graph


def brute_force(costs: LayoutCosts, limit: float) -> float:
    """The least cost of all cuts of all operators, by trying all of them."""
    candidates = [costs.candidates(op) for op in costs.graph.operators]
    count = len(candidates)
    total, memory = np.zeros((1,) * count), np.zeros((1,) * count)
    for number, row in enumerate(candidates):
        shape = [len(row) if n == number else 1 for n in range(count)]
        found = [costs.operator(number, cuts) for cuts in row]
        total = total + np.array([each.seconds for each in found]).reshape(shape)
        memory = memory + np.array([each.memory for each in found]).reshape(shape)
    for u, v, place in costs.graph.edges():
        table = np.array([[costs.edge_seconds(u, v, place, a, b) for b in candidates[v]] for a in candidates[u]])
        shape = [len(candidates[n]) if n in (u, v) else 1 for n in range(count)]
        total = total + (table if u < v else table.T).reshape(shape)
    return float(np.where(memory <= limit, total, inf).min())


@pytest.mark.parametrize("seed", range(6))
def test_dynamic_programming_is_brute_force(seed: int) -> None:
    drawn = Drawn(seed)
    mesh, most = drawn.random.choice(((Mesh.of(a=8), 6), (Mesh.of(a=2, b=4), 5), (EIGHT, 3)))
    graph = drawn.graph(drawn.random.randint(2, most))
    costs = LayoutCosts(graph, CARDS, mesh, train=drawn.random.random() < 0.5)
    free = dynamic_programming(costs)
    assert free is not None
    assert costs.total(free) == pytest.approx(brute_force(costs, inf), rel=1e-9)
    least = sum(min(costs.operator(n, c).memory for c in costs.candidates(op)) for n, op in enumerate(graph.operators))
    limit = (least + costs.memory(free)) / 2
    found = dynamic_programming(costs, limit)
    assert found is not None
    assert costs.memory(found) <= limit * (1 + 1e-12)
    assert costs.total(found) == pytest.approx(brute_force(costs, limit), rel=1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_eliminations_are_brute_force_on_any_graph(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    sizes = [int(numbers.integers(1, 5)) for _ in range(int(numbers.integers(1, 7)))]
    costs, memory = ([numbers.integers(0, 20, n).astype(float) for n in sizes] for _ in range(2))
    problem = ChoiceProblem(costs, memory)
    for u, v in itertools.permutations(range(len(sizes)), 2):
        if numbers.random() < 0.3 and (v, u) not in problem.edges:
            problem.edges[u, v] = numbers.integers(0, 20, (sizes[u], sizes[v])).astype(float)
    for limit in (inf, float(numbers.integers(0, 15 * len(sizes)))):
        fitting = [each for each in itertools.product(*map(range, sizes)) if problem.held(each) <= limit]
        found = solve(problem, limit)
        assert (found is None) == (not fitting)
        if found is not None:
            assert problem.held(found) <= limit
            assert problem.total(found) == min(map(problem.total, fitting))


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_recursive_programming_is_near_the_optimum(seed: int, train: bool) -> None:
    costs = LayoutCosts(Drawn(seed).graph(20), CARDS, EIGHT, train=train)
    best = dynamic_programming(costs)
    assert best is not None
    assert costs.total(recursive_programming(costs)) <= 1.2 * costs.total(best)


def matmul_chain(*shapes: tuple[int, int, int], given: dict[int, Strategy] | None = None) -> OperatorGraph:
    """Products one after the other, each [m, k] by a parameter [k, n]."""
    graph = OperatorGraph([TensorSize("x", shapes[0][:2])], [])
    for number, (m, k, n) in enumerate(shapes):
        graph.tensors += [TensorSize(f"w{number}", (k, n), parameter=True), TensorSize(f"y{number}", (m, n))]
        axes = CutAxis("i", m), CutAxis("k", k, "reduced"), CutAxis("j", n)
        uses = Use(2 * number, (0, 1)), Use(2 * number + 1, (1, 2))
        work = (MatrixWork((0,), (2,), (1,)),)
        strategy = (given or {}).get(number)
        result = Use(2 * number + 2, (0, 2))
        graph.operators.append(GraphOperator(f"m{number}", "matmul", axes, uses, result, work, strategy))
    return graph


def test_columns_then_rows_take_one_sum() -> None:
    given: dict[int, Strategy] = {0: ((1, 1), (1, 8)), 1: ((1, 8), (8, 1))}
    costs = LayoutCosts(matmul_chain((64, 512, 2048), (64, 2048, 512), given=given), CARDS, Mesh.of(a=8))
    cuts = sharding_propagation(costs)
    calls = [call for number, each in enumerate(cuts) for call in costs.operator(number, each).calls]
    assert [(call.kind, call.bytes) for call in calls] == [("all_reduce", 64 * 512 * 4)]
    assert costs.edge_seconds(0, 1, 0, cuts[0], cuts[1]) == 0


@pytest.mark.parametrize("tokens", [256, 1024, 4096, 16384])
def test_data_or_tensor_parallel_as_the_optimum_says(tokens: int) -> None:
    """An MLP h -> f -> h moves 4hf bytes a weight for data parallelism, 4bh an activation for tensor parallelism."""
    hidden, inner = 1024, 2048
    fast = replace(CARDS, links=tuple(replace(link, latency=0.0) for link in CARDS.links))
    data: dict[int, Strategy] = {0: ((8, 1), (1, 1)), 1: ((8, 1), (1, 1))}
    tensor: dict[int, Strategy] = {0: ((1, 1), (1, 8)), 1: ((1, 8), (8, 1))}
    sent: list[float] = []
    for given in (data, tensor):
        marked = matmul_chain((tokens, hidden, inner), (tokens, inner, hidden), given=given)
        before = Use(0, (0, None))
        marked.operators.insert(0, GraphOperator("e", "relu", (CutAxis("i", tokens),), (before,), before))
        costs = LayoutCosts(marked, fast, Mesh.of(a=8), train=True)
        found = [costs.operator(n, c) for n, c in enumerate(sharding_propagation(costs)) if n]
        sent.append(sum(each.communication + each.gradients for each in found))
    assert (sent[1] < sent[0]) == (tokens < inner)


PRODUCT = "%y = ms.matmul %x, %w\n"


def test_mindspores_expectations(tmp_path: Path) -> None:
    """The cost of what is found is not worse than that of what MindSpore's tests expect."""
    graph = graph_of_text(
        tmp_path,
        "%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %d: tensor<64x128xf32>",
        PRODUCT + "%z = ms.floor_div %y, %d",
        "tensor<64x128xf32>",
    )
    product, quotient = (op.name for op in graph.operators)
    expected: dict[str, Strategy] = {product: ((2, 1), (1, 4)), quotient: ((2, 4), (2, 4))}
    three = matmul_chain(*[(64, 64, 64)] * 3)
    rows: dict[str, Strategy] = {f"m{n}": ((8, 1), (1, 1)) for n in range(3)}
    wide = matmul_chain((32768, 1024, 1024))
    cases: list[tuple[OperatorGraph, dict[str, Strategy]]] = [
        (graph, expected), (three, rows), (wide, {"m0": ((1, 8), (8, 1))})
    ]  # fmt: skip
    for plain, strategies in cases:
        marked = LayoutCosts(with_strategies(plain, strategies, "expected"), CARDS, EIGHT)
        least = marked.total(sharding_propagation(marked))
        for mode in MODES[:2]:
            costs = LayoutCosts(plain, CARDS, EIGHT)
            found = search(costs, mode)
            assert found is not None
            assert costs.total(found) <= least * (1 + 1e-9)


def test_propagation_follows_marks(tmp_path: Path) -> None:
    graph = graph_of_text(
        tmp_path,
        "%x: tensor<64x32xf32>, %w: tensor<32x128xf32>, %d: tensor<64x128xf32>",
        PRODUCT + "%z = ms.add %y, %d",
        "tensor<64x128xf32>",
    )
    marked = with_strategies(graph, {graph.operators[0].name: ((4, 1), (1, 2))}, "f")
    costs = LayoutCosts(marked, CARDS, EIGHT)
    cuts = sharding_propagation(costs)
    assert [costs.strategy(use, cuts[1]) for use in marked.operators[1].operands] == [(4, 2), (4, 2)]


def test_the_axis_of_a_softmax_is_never_cut(tmp_path: Path) -> None:
    (softmax,) = graph_of_text(
        tmp_path, "%x: tensor<64x128xf32>", "%y = ms.softmax %x {axis = -1}", "tensor<64x128xf32>"
    ).operators
    assert softmax.operands[0].axes == (0, None)
    assert [axis.size for axis in softmax.axes] == [64]


def test_a_bias_beside_a_sum_needs_no_sum_of_its_gradient(tmp_path: Path) -> None:
    graph = graph_of_text(
        tmp_path,
        "%x: tensor<64x32xf32>",
        "%w = ms.get_parameter @w : tensor<8x32xf32>\n%b = ms.get_parameter @b : tensor<8xf32>\n"
        "%y = ms.dense %x, %w, %b",
        "tensor<64x8xf32>",
        "ms.parameter @w : tensor<8x32xf32>\nms.parameter @b : tensor<8xf32>",
    )
    costs = LayoutCosts(graph, CARDS, Mesh.of(a=8), train=True)
    (dense,) = graph.operators
    whys = {axis.kind: [c.why for c in costs.operator(0, (n,)).calls] for n, axis in enumerate(dense.axes) if n < 2}
    assert whys == {"parallel": ["gradient", "gradient"], "reduced": ["sums"]}


def test_strategies_are_written_and_read() -> None:
    graph = matmul_chain((64, 512, 2048), (64, 2048, 512))
    plan = plan_graph(graph, CARDS, GraphWish(8, train=True))
    text = strategies_text((op.name, op.operands) for op in plan.operators)
    marked = with_strategies(graph, read_strategies(text, "f"), "f")
    again = plan_graph(marked, CARDS, GraphWish(8, train=True))
    assert strategies_text((op.name, op.operands) for op in again.operators) == text


@pytest.mark.parametrize(
    "text", ["m0", "m0 [[1, 0]]", "m0 [1]", "m0 [[1]]\nm0 [[1]]", "m9 [[1, 1]]", "m0 [[3, 1], [1, 1]]"]
)
def test_wrong_strategies_are_refused(text: str) -> None:
    graph = matmul_chain((64, 512, 2048))
    with pytest.raises(MscError, match="MSC1125"):
        plan_graph(with_strategies(graph, read_strategies(text, "f"), "f"), CARDS, GraphWish(8))


@pytest.mark.parametrize("devices", [1, 6, 8, 12, 64, 1024])
def test_meshes_have_few_axes(devices: int) -> None:
    mesh = mesh_of(devices)
    assert mesh.size == devices
    assert len(mesh.axes) <= 3


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro"), [(2, 6), (4, 8), (3, 7), (4, 2)])
def test_simulated_bubbles_are_those_of_the_formula(schedule: str, stages: int, micro: int) -> None:
    events = simulate(schedule, [1.0] * stages, [2.0] * stages, micro)  # pyright: ignore[reportArgumentType]
    assert max(event.end for event in events) == pytest.approx(3 * micro * (1 + (stages - 1) / micro))


@pytest.mark.parametrize(("stages", "micro", "chunks"), [(2, 6, 3), (4, 8, 2), (3, 9, 2)])
def test_the_interleaved_bubble_is_that_of_the_formula(stages: int, micro: int, chunks: int) -> None:
    events = simulate("interleaved", [1.0] * stages, [2.0] * stages, micro, chunks)
    assert max(event.end for event in events) == pytest.approx(3 * micro * (1 + (stages - 1) / (micro * chunks)))


def test_a_large_table_trains_with_it_on_the_host(tmp_path: Path) -> None:
    graph = graph_of_text(
        tmp_path,
        "%x: tensor<64xi32>",
        "%t = ms.get_parameter @table : tensor<4194304x512xf32>\n%y = ms.gather %t, %x {axis = 0}",
        "tensor<64x512xf32>",
        "ms.parameter @table : tensor<4194304x512xf32>",
    )
    small = replace(CARDS, device=replace(CARDS.device, memory=8 << 30))
    with pytest.raises(MscError, match="MSC1122"):
        plan_graph(graph, small, GraphWish(1, train=True))
    plan = plan_graph(graph, small, GraphWish(1, train=True, host=frozenset({"table"})))
    assert plan.peak < graph.tensors[graph.parameters[0]].bytes
    assert plan.seconds["sums"] >= 2 * 64 * 512 * 4 / 25e9
    with pytest.raises(MscError, match="MSC1121"):
        plan_graph(graph, small, GraphWish(1, host=frozenset({"tables"})))


def test_stages_share_the_work() -> None:
    graph = matmul_chain(*[(8192, 8192, 8192)] * 8)
    plan = plan_model(graph, CARDS, GraphWish(8, train=True), stages=4, micro_batches=8)
    assert [len(stage.operators) for stage in plan.stages] == [2] * 4
    assert plan.bubble == pytest.approx(3 / 8, rel=0.15)
    with pytest.raises(MscError, match="MSC1123"):
        plan_model(graph, CARDS, GraphWish(8), stages=3)


def test_the_command(tmp_path: Path) -> None:
    model = str(Path(__file__).parents[3] / "samples" / "mlp" / "mlp.mir")
    out, trace, strategy = (str(tmp_path / name) for name in ("p.json", "t.json", "s.txt"))
    words = ["parallel", "plan", model, "--devices", "8", "--train", "--global-batch", "4", "--stages", "2"]
    done = CliRunner().invoke(command, [*words, "--json", out, "--trace", trace, "--strategy", strategy])
    assert done.exit_code == 0, done.output
    assert "stage 1" in done.output
    plan = json.loads(Path(out).read_text())
    assert plan["step_s"] == pytest.approx(sum(plan["seconds"].values()))
    assert plan["memory_per_device"] > 0
    lanes = {event["tid"] for event in json.loads(Path(trace).read_text())["traceEvents"]}
    assert lanes == set(range(8))
    assert CliRunner().invoke(command, [*words, "--load-strategy", strategy]).exit_code == 0


def test_gradients_of_many_parameters_are_hidden_in_buckets() -> None:
    """Twenty layers of a million parameters, ten milliseconds each way; the last gradients stay exposed."""
    graph = matmul_chain(*[(256, 1024, 1024)] * 20)
    marked = with_strategies(graph, {op.name: ((8, 1), (1, 1)) for op in graph.operators}, "f")
    plan = plan_graph(marked, CARDS, GraphWish(8, train=True, computing=0.02))
    assert plan.computing == pytest.approx(0.02)
    assert plan.tails["buckets"] < 0.3e-3 < plan.tails["one reduction at the end"]
    assert plan.tails["one reduction at the end"] < plan.tails["each gradient at the end"]


def test_a_graph_too_entangled_for_tables_is_no_worse_than_where_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msc.planner.elimination._LARGEST", 30)
    numbers = np.random.default_rng(0)
    for _ in range(20):
        problem = ChoiceProblem([numbers.random(4) for _ in range(8)], [numbers.random(4) for _ in range(8)])
        problem.edges.update({edge: numbers.random((4, 4)) for edge in itertools.combinations(range(8), 2)})
        start = [int(choice) for choice in numbers.integers(0, 4, 8)]
        found = solve(problem, start=start)
        assert found is not None
        assert problem.total(found) <= problem.total(start) + 1e-12
