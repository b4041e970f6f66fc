"""What a step costs: the formulas of the literature, published runs, and what must get better or worse."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.planner.cases import predict, read_cases
from msc.planner.choice import Wish, choose
from msc.planner.cluster import cluster_named, cluster_text
from msc.planner.collectives import exposed_tail
from msc.planner.step import Degrees, Plan, step_cost
from msc.planner.transformer import Gpt, LayerPart, activation_bytes
from msc.support.diagnostics import MscError

PUBLISHED = Path(__file__).with_name("megatron_2021.toml")
GPT3 = Gpt(96, 12288, 96, 2048, 51200)
A100 = cluster_named("a100")


def test_published_runs() -> None:
    outcomes = [predict(case, PUBLISHED.parent) for case in read_cases(PUBLISHED)]
    assert all(abs(each.error or 1.0) < 0.1 and each.fits for each in outcomes)


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved"])
def test_published_runs_whatever_their_pipeline_was(schedule: str) -> None:
    """The table does not say which schedule a row ran."""
    for case in read_cases(PUBLISHED):
        outcome = predict(replace(case, schedule=schedule), PUBLISHED.parent)
        assert abs(outcome.error or 1.0) < 0.1, case.name


def test_flops_are_those_of_the_published_formula() -> None:
    b, s, n, h, v = 64, GPT3.sequence, GPT3.layers, GPT3.hidden, GPT3.vocabulary
    whole = 96 * b * s * n * h**2 * (1 + s / (6 * h) + v / (16 * n * h))
    assert GPT3.flops(b, "full") == pytest.approx(whole)
    assert GPT3.flops(b, "none") == pytest.approx(72 * b * s * n * h**2 * (1 + s / (6 * h) + v / (12 * n * h)))


@pytest.mark.parametrize("tensor", [1, 8])
def test_activations_are_those_of_the_published_formulas(tensor: int) -> None:
    s, b, h, a, t = GPT3.sequence, 2, GPT3.hidden, GPT3.heads, tensor
    cut = LayerPart(b, t)
    assert activation_bytes(GPT3, cut, "none") == pytest.approx(s * b * h * (10 + 24 / t + 5 * a * s / (h * t)))
    along = replace(cut, sequence_cut=True)
    assert activation_bytes(GPT3, along, "none") == pytest.approx(s * b * h / t * (34 + 5 * a * s / h))
    assert activation_bytes(GPT3, cut, "full") == 2 * s * b * h


@pytest.mark.parametrize("level", range(4))
def test_states_of_a_parameter(level: int) -> None:
    ranks = 8
    plan = Plan(Degrees(dp=ranks), 8, optimizer_level=level, recompute="full")
    memory = step_cost(replace(GPT3, layers=4), A100, plan).memory
    held = memory["weights"] + memory["gradients"] + memory["optimizer state"]
    parameters = 4 * (GPT3.shared_parameters + GPT3.expert_parameters) + GPT3.embedding_parameters
    each = {0: 16, 1: 4 + 12 / ranks, 2: 2 + 14 / ranks, 3: 16 / ranks}[level]
    assert held == pytest.approx(each * parameters)


def test_bubbles() -> None:
    degrees = Degrees(dp=1, tp=8, pp=8)
    plain = Plan(degrees, 64)
    assert plain.bubble == 7 / 64
    assert replace(plain, schedule="interleaved", chunks=3).bubble == 7 / 192
    idle = [step_cost(GPT3, A100, replace(plain, chunks=v)).seconds["pipeline bubble"] for v in (1, 3)]
    assert idle[0] == pytest.approx(3 * idle[1])


def test_schedules_hold_as_many_micro_batches_as_they_keep_in_flight() -> None:
    plan = Plan(Degrees(tp=8, pp=8), 64, recompute="full")
    held = [
        step_cost(GPT3, A100, replace(plan, schedule=schedule, chunks=chunks)).memory["activations"]
        for schedule, chunks in (("1f1b", 1), ("interleaved", 3), ("gpipe", 1))
    ]
    assert held[1] == pytest.approx(held[0] * (1 + 7 / (8 * 3)))
    assert held[2] >= held[0] * 8


def test_all_dimensions_combine() -> None:
    model = Gpt(24, 4096, 32, 32768, 51200, experts=8, chosen=2, attention="fused")
    plain = step_cost(model, A100, Plan(Degrees(dp=8, tp=4, pp=2), 64))
    cut = step_cost(model, A100, Plan(Degrees(dp=8, tp=4, pp=2, cp=4, ep=8), 64, sequence_parallel=True))
    assert cut.seconds["products"] < plain.seconds["products"] / 3.5
    assert {
        "context parallel",
        "expert parallel",
        "tensor parallel",
        "pipeline messages",
        "gradients",
    } <= cut.sent.keys()
    assert cut.peak < plain.peak / 3


def test_gradients_that_are_reduced_as_they_become_known_are_hidden() -> None:
    known = [(0.1 * i, 1.0) for i in range(1, 11)]
    assert exposed_tail(known, 1.0, 1.0, lambda bytes_: 0.05 * bytes_) == pytest.approx(0.05)
    assert exposed_tail(known, 1.0, 100.0, lambda bytes_: 0.05 * bytes_) == pytest.approx(0.5)
    assert exposed_tail(known, 1.0, 1.0, lambda bytes_: 0.2 * bytes_) == pytest.approx(1.1)


def test_tensor_parallelism_wins_within_nodes_only() -> None:
    wish = Wish(64, 64, micro_batch=1, recompute="full", optimizer_level=1)
    found = choose(GPT3, A100, wish).best.plan
    assert 1 < found.mesh.tp <= 8
    links = (A100.links[0], replace(A100.links[1], bandwidth=A100.links[0].bandwidth))
    slow = (replace(A100.links[0], bandwidth=2e9), A100.links[1])
    assert choose(GPT3, replace(A100, links=slow), wish).best.plan != found
    fast = choose(GPT3, replace(A100, links=links), wish).best
    assert fast.cost.step <= choose(GPT3, A100, wish).best.cost.step


def test_what_fits_nowhere_is_refused_with_its_breakdown() -> None:
    with pytest.raises(MscError, match=r"MSC1122.*optimizer state"):
        choose(GPT3, cluster_named("ascend910b-8"), Wish(8, 8, Degrees(dp=8), recompute="full"))


def test_what_divides_nothing_is_refused() -> None:
    with pytest.raises(MscError, match="MSC1123"):
        choose(GPT3, A100, Wish(7, 16, Degrees(dp=2, tp=8)))
    with pytest.raises(MscError, match="MSC1123"):
        choose(GPT3, cluster_named("ascend910b-8"), Wish(8, 16))


def test_the_json_of_cases(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    text = (
        '[[cases]]\nname = "small"\ncluster = "ascend910b-8"\nglobal_batch = 64\n'
        'model = { kind = "gpt", layers = 8, hidden = 1024, heads = 16, sequence = 1024, vocabulary = 32000 }\n'
    )
    path = tmp_path / "cases.toml"
    path.write_text(text + "published = { step_s = 1.5 }\n")
    done = CliRunner().invoke(command, ["parallel", "plan", "--cases", str(path), "--json", str(out)])
    assert done.exit_code == 0
    (case,) = json.loads(out.read_text())["cases"]
    assert case["name"] == "small"
    assert case["published"] == {"step_s": 1.5}
    assert case["predicted"].keys() == {
        "tflops_per_device", "step_s", "bytes_per_device", "memory_per_device", "bubble"
    }  # fmt: skip
    mesh = case["plan"]["mesh"]
    assert mesh["dp"] * mesh["tp"] * mesh["pp"] == 8
    assert sum(case["plan"]["seconds"].values()) == pytest.approx(case["predicted"]["step_s"])


WHOLE = """[[cases]]
name = "a"
cluster = "a100"
global_batch = 8
model = { kind = "gpt", layers = 2, hidden = 64, heads = 2, sequence = 8, vocabulary = 64 }
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WHOLE.replace('"a"', "3"), 2),
        (WHOLE.replace("layers", "layer"), 5),
        (WHOLE.replace("global_batch = 8\n", ""), 1),
        (WHOLE + WHOLE + "nme = 3", 11),
        (WHOLE + '[[cases]]\nname = "b"', 6),
        (WHOLE + "schedule = 'zigzag'", 6),
        ("x = 1", 1),
        ("cases = []", 1),
    ],
)
def test_wrong_cases_are_refused_at_their_line(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(text)
    with pytest.raises(MscError) as caught:
        read_cases(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "MSC1124"
    assert diagnostic.location is not None
    assert diagnostic.location.line == line


def test_gpt2_is_refused_on_one_small_device_and_fits_on_eight(tmp_path: Path) -> None:
    cluster = replace(
        cluster_named("ascend910b-8"), device=replace(cluster_named("ascend910b-8").device, memory=32 << 30)
    )
    (tmp_path / "small.toml").write_text(cluster_text(cluster))
    path, out = tmp_path / "cases.toml", tmp_path / "out.json"
    model = '{ kind = "gpt", layers = 48, hidden = 1600, heads = 25, sequence = 1024, vocabulary = 50257 }'
    common = f'model = {model}\ncluster = "small.toml"\nglobal_batch = 8\nrecompute = false\n'
    alone = "mesh = { dp = 1, tp = 1, pp = 1 }\n"
    path.write_text(f'[[cases]]\nname = "one"\n{common}{alone}[[cases]]\nname = "eight"\n{common}')
    done = CliRunner().invoke(command, ["parallel", "plan", "--cases", str(path), "--json", str(out)])
    assert isinstance(done.exception, MscError)
    (error,) = done.exception.diagnostics
    assert error.code == "MSC1122"
    assert all(cause in error.message for cause in ("for one", "weights", "optimizer state", "activations"))
    assert [case["fits"] for case in json.loads(out.read_text())["cases"]] == [False, True]


def test_a_hundred_billion_parameters_on_a_thousand_cards() -> None:
    model = Gpt(80, 10240, 80, 2048, 50304)
    choice = choose(model, cluster_named("ascend910b-1024"), Wish(1536, 1024, optimizer_level=1, micro_batch=1))
    assert choice.best.plan.mesh.devices == 1024
    assert choice.best.cost.peak <= cluster_named("ascend910b-1024").free_memory
    assert choice.lost
