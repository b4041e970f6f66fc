"""What `msc bench` says of kernels: rates, limits, names, orders, and a trace of real calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

from msc.driver.cli import command
from msc.driver.options import CompileOptions
from msc.driver.reports import benchmark
from msc.driver.reports.benchmark import (
    ORDERS,
    Measurement,
    ProfiledCall,
    above_peaks,
    kernel_work,
    measurement_text,
    summary,
)
from msc.driver.reports.kernel_rates import KernelRate, KernelTime, KernelWork, rates
from msc.driver.verbs.bench import trace_text
from msc.runtime import machine
from msc.runtime.machine import Roofline

SLOW = Roofline("a CPU", 2, 1e9, 1e9, 1, ((1 << 20, 1e9),))
FAST = Roofline("a CPU", 2, 5e9, 5e8, 1, ((1 << 20, 4e9),))
TIMES = (KernelTime("k0_dense", 1e-6, 0.25), KernelTime("k1_relu", 2e-6, 0.5), KernelTime("copy", 1e-6, 0.25))
WORKS = (KernelWork(4000, 100, 1, ("MatMul '/fc'",)), KernelWork(10, 800, 1, ("a", "b", "c", "d")))


def measurement(machine: Roofline = SLOW) -> Measurement:
    calls = (ProfiledCall(10.0, 10.1, (1e-6, 2e-6, 1e-6)), ProfiledCall(10.2, 10.3, (2e-6, 3e-6, 1e-6)))
    return Measurement(summary([5e-6]), 6e-6, TIMES, rates(TIMES, WORKS, machine), machine, calls=calls)


def rows(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.startswith(("k0", "k1", "copy"))]


def test_orders() -> None:
    given = {sort: rows(measurement_text(measurement(), sort)) for sort in ORDERS}
    assert given["call"] == ["k0_dense", "k1_relu", "copy"]
    assert given["time"] == ["k1_relu", "k0_dense", "copy"]
    assert given["name"] == ["copy", "k0_dense", "k1_relu"]
    assert given["flops"] == ["k0_dense", "k1_relu", "copy"]
    assert given["peak"] == ["k1_relu", "k0_dense", "copy"]


def test_totals_and_names() -> None:
    text = measurement_text(measurement())
    assert "all 3 kernels" in text
    assert "MatMul '/fc'" in text
    assert "a, b, c, and 1 more" in text


def test_shares_above_the_peak_are_explained() -> None:
    assert [line.split(":")[0] for line in above_peaks(measurement().rates)] == ["above 100 % of peak"]
    faster = (KernelRate.of(KernelWork(1, 9000), 1e-6, SLOW),)
    assert [line.split(":")[0] for line in above_peaks(faster)] == ["above 100 % of memory"]
    assert above_peaks(measurement(FAST).rates) == []


def test_peaks_that_are_beaten_are_measured_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MSC_CACHE_DIR", str(tmp_path))
    found = iter((SLOW, FAST))

    def probed(threads: int) -> Roofline:
        return replace(next(found), threads=threads)

    monkeypatch.setattr(machine, "probe", probed)
    assert machine.measured_machine(1) == SLOW
    assert machine.measured_machine(1, older_than=3600) == SLOW
    best = replace(FAST, bytes_per_second=1e9)
    assert machine.measured_machine(1, older_than=0) == best
    assert machine.measured_machine(1) == best


def test_a_kernel_that_beats_the_peak_has_it_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[float | None] = []

    def measured(threads: int, older_than: float | None = None) -> Roofline:
        asked.append(older_than)
        return replace(SLOW, threads=threads, multiply_adds_per_second=1e3 if len(asked) == 1 else 1e18)

    monkeypatch.setattr(benchmark, "measured_machine", measured)
    shown = CliRunner().invoke(command, ["bench", str(onnx_model(tmp_path)), "--kernels", "--seconds", "0", "--json"])
    found = json.loads(shown.output)
    assert len(asked) == 2
    assert all(kernel["share_of_peak"] < 1 for kernel in found["kernels"] if "flops" in kernel)


def onnx_model(folder: Path) -> Path:
    path = folder / "net.onnx"
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4, 4], [1.0] * 16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "/net/fc"), helper.make_node("Relu", ["a"], ["y"], "/act")]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy")
    graph = helper.make_graph(nodes, "net", [x], [y], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(made.SerializeToString())
    return path


def test_nodes_are_named(tmp_path: Path) -> None:
    named = {origin for work in kernel_work(str(onnx_model(tmp_path)), CompileOptions()) for origin in work.origins}
    assert named == {"MatMul '/net/fc'", "Relu '/act'"}


def test_the_json_tells_its_units_and_when() -> None:
    data: dict[str, Any] = measurement().to_json()
    assert data["measured_at"].endswith("+00:00")
    numbers = {name for name, value in data["kernels"][0].items() if isinstance(value, int | float)}
    assert numbers <= data["units"].keys()


def test_a_trace_of_calls() -> None:
    trace = json.loads(trace_text(measurement(), "net.onnx", 2))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in slices] == ["call 0", *rows(measurement_text(measurement()))] * 1 + [
        "call 1",
        "k0_dense",
        "k1_relu",
        "copy",
    ]
    assert slices[0]["ts"] == 0
    assert slices[4]["ts"] == pytest.approx(2e5)
    assert slices[6]["ts"] - slices[5]["ts"] == pytest.approx(slices[5]["dur"])
    assert slices[1]["args"]["computes"] == "MatMul '/fc'"


def test_a_trace_that_cannot_be_written_is_told_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(*_: Any, **__: Any) -> None:
        pytest.fail("it measured first")

    monkeypatch.setattr(benchmark, "benchmark", measured)
    words = ["bench", str(onnx_model(tmp_path)), "--trace", str(tmp_path / "none" / "trace.json")]
    assert "MSC0004" in str(CliRunner().invoke(command, words).exception)


def test_a_trace_is_written_over_a_trace_alone(tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    words = ["bench", str(onnx_model(tmp_path)), "--seconds", "0", "--trace", str(out)]
    for _ in range(2):
        assert CliRunner().invoke(command, words).exit_code == 0
        assert json.loads(out.read_text())["traceEvents"]
    out.write_text("mine")
    assert "MSC0011" in str(CliRunner().invoke(command, words).exception)
