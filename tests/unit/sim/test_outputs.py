"""What `msc sim` writes: a trace with paired arrows, CSVs whose sums agree, a picture, figures."""

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from msc.backends.simulation.case_files import library_schedule
from msc.backends.simulation.result_files import Outputs, timeline_svg
from msc.backends.simulation.running import simulate_cases, simulate_file
from msc.codegen.davinci.simulate import DEFAULTS, SimulationOptions, simulate_kernel
from msc.lowering.ascend.fused_matmul import fused_matmul_kernel
from msc.schedule.cube.products import MatmulShape
from msc.sim.trace import pipe_csv, trace_json
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target

B1 = davinci_target("ascend910b1")
SAMPLES = Path(__file__).parents[3] / "samples" / "davinci"
DATA = SimulationOptions(functional=True)
PREFIX = {"add": "aiv_", "matmul": "aic_"}


@pytest.mark.parametrize("sample", ["add", "matmul"])
def test_files(sample: str, tmp_path: Path) -> None:
    outputs = Outputs(
        json="-",
        trace=str(tmp_path / "trace.json"),
        csv=str(tmp_path / "csv"),
        svg=str(tmp_path / "a.svg"),
        window=(0, 2000),
    )
    figures: dict[str, Any] = json.loads(
        simulate_file(str(SAMPLES / f"{sample}.dv.mir"), None, DEFAULTS, False, outputs)
    )
    assert figures["cycles"] > 0
    events: list[dict[str, Any]] = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    starts = [e["id"] for e in events if e["ph"] == "s"]
    ends = [e["id"] for e in events if e["ph"] == "f"]
    assert sorted(starts) == sorted(ends)
    assert len(starts) > 20
    assert {e["pid"] for e in events if e["ph"] == "X"} >= {60}
    pipes = list(csv.DictReader(io.StringIO((tmp_path / "csv" / f"{sample}_pipes.csv").read_text())))
    mean = sum(float(row[PREFIX[sample] + "mte2_time(us)"]) for row in pipes) / len(pipes)
    assert mean == pytest.approx(figures["mte2_us"], abs=1e-3)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "csv" / f"{sample}_instructions.csv").read_text())))
    moves = sum(float(row["cycles"]) for row in rows if row["instr"].startswith("copy_gm"))
    assert moves / len(pipes) == pytest.approx(figures["mte2_us"] * 1850, rel=1e-3)
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_report() -> None:
    text = simulate_file(str(SAMPLES / "matmul.dv.mir"), None, DATA, True, Outputs())
    for word in ("cube utilisation", "roofline", "mte2 binds", "l1->l0a", "L2 hits"):
        assert word in text


def test_kernel_and_c() -> None:
    assert "davinci.mad" in simulate_file(str(SAMPLES / "matmul.dv.mir"), None, DEFAULTS, True, Outputs(), "davinci")
    c = simulate_file(str(SAMPLES / "matmul.dv.mir"), None, DEFAULTS, True, Outputs(), "c")
    assert "mad(c0, a0 + dv_mod(k, 2) * 4096, b0 + dv_mod(k, 2) * 4096, 64, 64, 64, k, 0, 0);" in c


@pytest.mark.parametrize("option", ["json", "trace", "csv", "svg"])
def test_files_of_a_user_stay(option: str, tmp_path: Path) -> None:
    """What is there already is replaced only where `msc sim` wrote it, or by force."""
    source, place = tmp_path / "k.dv.mir", tmp_path / "out"
    source.write_text((SAMPLES / "add.dv.mir").read_text())
    file = place / "add_pipes.csv" if option == "csv" else place

    def run(*, force: bool = False, out: Path = place) -> None:
        simulate_file(str(source), None, DEFAULTS, False, Outputs(**{option: str(out)}, force=force))  # pyright: ignore

    run()
    run()
    file.write_text("mine")
    with pytest.raises(MscError, match="MSC0011"):
        run()
    assert file.read_text() == "mine"
    run(force=True)
    assert file.read_text() != "mine"
    if option != "csv":
        with pytest.raises(MscError, match="MSC0010"):
            run(out=source)


def test_kernels_of_one_file_have_files_of_their_own(tmp_path: Path) -> None:
    text = (SAMPLES / "add.dv.mir").read_text()
    (tmp_path / "two.dv.mir").write_text(text + text.replace("@add", "@again"))
    outputs = Outputs(json="-", trace=str(tmp_path / "t.json"), svg=str(tmp_path / "p.svg"))
    printed = json.loads(simulate_file(str(tmp_path / "two.dv.mir"), None, DEFAULTS, False, outputs))
    assert [figures["kernel"] for figures in printed["kernels"]] == ["add", "again"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "p_add.svg",
        "p_again.svg",
        "t_add.json",
        "t_again.json",
        "two.dv.mir",
    ]


def test_cores_of_both_kinds_are_apart(tmp_path: Path) -> None:
    """A product and a GELU: lanes, columns and threads of the cube core and of both vector cores."""
    shape = MatmulShape(64, 64, 64)
    kernel = fused_matmul_kernel(shape, library_schedule(shape, B1, cores=1), B1, "gelu")
    result = simulate_kernel(kernel, SimulationOptions(trace_events=10_000))
    picture = timeline_svg(result, None)
    for lane in ("AIC M<", "AIC MTE2<", "AIV0 V<", "AIV1 MTE3<"):
        assert lane in picture
    cube, *vectors = csv.DictReader(io.StringIO(pipe_csv(result)))
    assert float(cube["aic_mac_time(us)"]) > 0
    assert cube["aiv_vec_time(us)"] == ""
    for row in vectors:
        assert float(row["aiv_vec_time(us)"]) > 0
        assert row["aic_mac_time(us)"] == ""
    threads = {e["args"]["name"] for e in trace_json(result)["traceEvents"] if e["name"] == "thread_name"}  # pyright: ignore
    assert threads == {"block 0 cube0", "block 0 vector0", "block 0 vector1"}


@pytest.mark.parametrize("name", ["[/nonsense]", "\\u001b[31m", "[bold]x", "\\nx", "\\u202e"])
def test_names_of_cases_are_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(f'[[cases]]\nname = "{name}"\nop = "add"\nshape = [4096]\n')
    told: list[str] = []
    simulate_cases(path, None, None, told.append)
    assert all(line.isprintable() for line in "".join(told).splitlines())
    assert len("".join(told).splitlines()) == 2


@pytest.mark.parametrize("text", ["shape = " + "[" * 100_000 + "]" * 100_000, "m = " + "9" * 10_000])
def test_cases_beyond_what_is_read_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(f'[[cases]]\nname = "a"\nop = "add"\n{text}\n')
    with pytest.raises(MscError, match="MSC1022"):
        simulate_cases(path, None, None, print)
