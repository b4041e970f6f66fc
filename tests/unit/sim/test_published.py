"""The published rows: close in time, in the same order, bound by the same pipe; and the form of lists of cases."""

import json
from pathlib import Path

import pytest

from msc.backends.simulation.case_files import read_cases
from msc.backends.simulation.case_report import errors_text, run_case, same_order
from msc.backends.simulation.running import simulate_cases
from msc.codegen.davinci.simulate import SimulationOptions
from msc.sim.machine import L2State
from msc.support.diagnostics import MscError

BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "ascend"
PUBLISHED, OTHERS = BENCHMARKS / "published.toml", BENCHMARKS / "published_2.toml"


def test_published_rows() -> None:
    outcomes = [run_case(case) for case in read_cases(PUBLISHED)]
    assert same_order(outcomes)
    for outcome in outcomes:
        error = outcome.error("task_us")
        assert error is not None
        assert abs(error) < 0.15, outcome.case.name
        assert outcome.predicted["binding_pipe"] == "mte2"
        if outcome.case.op == "matmul":
            assert abs(outcome.error("mac_us") or 1.0) < 0.05
            assert abs(outcome.error("mte2_us") or 1.0) < 0.1


def test_rows_that_nothing_was_fitted_on() -> None:
    """Three products on two machines; the others take long."""
    assert any(case.fitted for case in read_cases(PUBLISHED))
    others = read_cases(OTHERS)
    assert len(others) == 27
    assert not any(case.fitted for case in others)
    small = [
        c for c in others if c.name in ("A3 pto-ladder 1536", "950 CATLASS 1024x2368x1024", "A2doc 128x24576x512 MDL")
    ]
    outcomes = [run_case(case) for case in small]
    assert len(outcomes) == 3
    for outcome in outcomes:
        assert abs(outcome.error("task_us") or 1.0) < 0.1, outcome.case.name
    assert "3 rows that nothing was fitted on" in errors_text(outcomes)


def test_what_is_larger_than_l2_is_not_in_it(tmp_path: Path) -> None:
    """However many moves it takes to read it: a start that took a core's moves at a time would keep what fits."""
    found = list[float]()
    for rows in (64, 8, 2):
        text = f'[[cases]]\nop = "copy"\nshape = [1536, 12288]\npath = "gm->ub"\ntile = [{rows}, 1024]\nl2_mb = 8'
        [outcome] = [run_case(case) for case in read_cases(write(tmp_path, text))]
        found.append(outcome.number("hbm_bytes") or 0.0)
    assert min(found) > 0.9 * 1536 * 12288 * 2
    assert max(found) < 1.03 * min(found)


@pytest.mark.parametrize(("start", "hits"), [("warm", 1.0), ("cold", 0.0)])
def test_how_l2_starts_is_a_choice(start: str, hits: float, tmp_path: Path) -> None:
    text = '[[cases]]\nop = "copy"\nshape = [1536, 1024]\npath = "gm->ub"\ntile = [16, 1024]'
    named = write(tmp_path, f'{text}\nl2 = "{start}"')
    assert run_case(read_cases(named)[0]).predicted["l2_hit_rate"] == hits
    options = SimulationOptions(l2=L2State.of(start))
    assert run_case(read_cases(write(tmp_path, text))[0], options).predicted["l2_hit_rate"] == hits


@pytest.mark.parametrize(("dtype", "out"), [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")])
def test_utilisation_is_by_the_peak_of_the_type(dtype: str, out: str, tmp_path: Path) -> None:
    text = f'[[cases]]\nop = "matmul"\nm = 512\nn = 512\nk = 4096\ndtype = "{dtype}"\nout_dtype = "{out}"'
    [outcome] = [run_case(case) for case in read_cases(write(tmp_path, text))]
    utilisation, ratio = outcome.number("cube_utilisation"), outcome.number("mac_ratio")
    assert utilisation is not None
    assert ratio is not None
    assert 0.05 < utilisation <= ratio < 1


def test_cube_and_vector_cores_are_apart(tmp_path: Path) -> None:
    text = '[[cases]]\nop = "matmul_gelu"\nm = 512\nn = 512\nk = 512\nschedule = { cores = 2 }'
    [outcome] = [run_case(case) for case in read_cases(write(tmp_path, text))]
    for name in ("aic_mac_time_us", "aic_fixpipe_time_us", "aiv_vec_time_us", "aiv_mte3_time_us", "aiv_mte2_ratio"):
        assert (outcome.number(name) or 0.0) > 0, name
    assert outcome.number("aic_mte2_time_us") != outcome.number("aiv_mte2_time_us")
    assert outcome.number("mte2_us") == outcome.number("aic_mte2_time_us")
    assert not {"aic_vec_time_us", "aiv_mac_time_us"} & outcome.predicted.keys()
    assert str(outcome.predicted["binding_pipe"]).startswith(("aic_", "aiv_"))


CASES = """
[[cases]]
name = "all"
op = "matmul"
m = 256
n = 256
k = 256
transpose_b = true
published = {{ task_us = 10 }}
schedule = {schedule}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "cases.toml"
    path.write_text(text)
    return path


def test_every_key_of_a_matmul(tmp_path: Path) -> None:
    schedule = (
        "{ cores = 4, grid = [2, 2], single = [128, 128], base = [64, 64, 64], depth_a1 = 4, depth_b1 = 2, "
        "big_packets = true, l2_split = [1, 2], constant_tiling = true, unit_flag = true, double_buffer = true, "
        "scalar_cycles = 449 }"
    )
    [outcome] = [run_case(case) for case in read_cases(write(tmp_path, CASES.format(schedule=schedule)))]
    assert outcome.predicted["cores"] == 4
    assert outcome.error("task_us") is not None


@pytest.mark.parametrize(
    "text",
    [
        'name = "a"\nop = "gelu"\nshape = [64, 64]\nschedule = { unit = "scalar", cores = 1 }',
        'name = "b"\nop = "copy"\nshape = [256, 256]\npath = "gm->l1 nd2nz"\ntile = [16, 64]\nrepeat = 4\ncores = 2',
        'name = "c"\nop = "copy"\nshape = [256, 256]\npath = "ub->gm"\ntile = [16, 64]\nsame_address = true',
        'name = "d"\nop = "copy"\nshape = [256, 256]\npath = "l0c->gm"\ntile = [16, 64]\nschedule = { cores = 1 }',
        'name = "e"\nop = "matmul_gelu"\nm = 64\nn = 64\nk = 64\nschedule = { cores = 1, via = "gm" }',
        'name = "f"\nop = "matmul_gelu"\ntarget = "ascend950pr"\nm = 64\nn = 64\nk = 64\nvia = "ub"',
        'name = "g"\nop = "matmul_relu"\nm = 64\nn = 64\nk = 64\ndtype = "bf16"',
    ],
)
def test_other_operations(tmp_path: Path, text: str) -> None:
    printed = list[str]()
    simulate_cases(write(tmp_path, "[[cases]]\n" + text), None, "-", printed.append)
    [case] = json.loads(printed[0])["cases"]
    assert case["predicted"]["task_us"] > 0


@pytest.mark.parametrize("total", [1, 64, 1000, 10_000])
@pytest.mark.parametrize("more", ["", "schedule = { cores = 7, elements = 32, double_buffer = false }"])
def test_cores_without_a_share_do_nothing(tmp_path: Path, total: int, more: str) -> None:
    text = f'[[cases]]\nop = "add"\nshape = [{total}]\n{more}'
    printed = list[str]()
    simulate_cases(write(tmp_path, text), None, "-", printed.append, options=SimulationOptions(functional=True))
    assert json.loads(printed[0])["cases"][0]["predicted"]["task_us"] > 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = [", "is no TOML"),
        ("x = 1", r"holds no \[\[cases\]\]"),
        ('[[cases]]\nname = "a"\nop = "matmull"', "did you mean 'matmul'"),
        ('[[cases]]\nname = "a"\nop = "matmul"\nm = 64', "n is missing"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = [64]\nschedule = { element = 64 }', "did you mean 'elements'"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = [64]\nschedule = { cores = 0 }', "cores is 0"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = "64"', "shape is '64'"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = ["64"]', r"shape is \['64'\]"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = [64]\nl2 = "hot"', "l2 is 'hot'"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = [64]\nfitted = ["task_us"]', "fitted on, and not published"),
        ('[[cases]]\nname = "a"\nop = "add"\nshape = [64]\ndtype = "i8"', "computes in f16 and f32"),
    ],
)
def test_wrong_lists_are_told_of(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(MscError, match=f"MSC1022(.|\n)*{told}"):
        simulate_cases(write(tmp_path, text), None, "-", print)


def test_a_case_that_cannot_be_simulated_does_not_stop_the_others(tmp_path: Path) -> None:
    text = """
    [[cases]]
    name = "small chip"
    target = "ascend310"
    op = "copy"
    shape = [256, 256]
    path = "gm->l1 nd2nz"
    tile = [16, 64]
    published = { task_us = 3 }
    [[cases]]
    name = "fits"
    op = "add"
    shape = [64]
    """
    printed = list[str]()
    with pytest.raises(MscError, match=r"(?s)nd2nz.*in the case 'small chip' for ascend310"):
        simulate_cases(write(tmp_path, text), None, "-", printed.append)
    refused, simulated = json.loads(printed[0])["cases"]
    assert refused["predicted"] == {}
    assert "nd2nz" in refused["refused"][0]
    assert simulated["predicted"]["task_us"] > 0
