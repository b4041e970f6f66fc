"""The published rows: close in time, in the same order, bound by the same pipe; and the form of lists of cases."""

import json
from pathlib import Path

import pytest

from msc.driver.simulation.case_files import read_cases
from msc.driver.simulation.case_report import run_case, same_order
from msc.driver.simulation.running import simulate_cases
from msc.support.diagnostics import MscError

PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "ascend" / "published.toml"


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
    simulate_cases(write(tmp_path, text), None, "-", printed.append, functional=True)
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
