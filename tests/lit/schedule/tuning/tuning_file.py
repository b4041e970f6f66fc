"""Writes tuning files for the one kernel of a module: right ones, and ones that are refused."""

import sys
from dataclasses import replace
from pathlib import Path

from msc.dialects.gk import KernelOp
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.schedule.tuning.tuned_schedules import TunedSchedule, TuningFile, kernel_key, target_text
from msc.targets.catalogue import machine_named

MODEL, FOLDER = sys.argv[1], Path(sys.argv[2])
TARGET = machine_named("x86-64-v3")
SCHEDULE = (
    "axis m 8: S0.0 S1.0 S2.0",
    "axis n 16: S0.1 S1.1 S2.1",
    "axis k 32: S1.2",
    "for m tile 3",
    "  place t0 in register",
    "  for m unroll, n vector",
    "    run S0",
    "  for k, m unroll, n vector",
    "    run S1",
    "  for m unroll, n vector",
    "    run S2",
)


def write(name: str, entry: TunedSchedule, version: str | None = None) -> str:
    file = TuningFile((entry,)) if version is None else TuningFile((entry,), version)
    (FOLDER / f"{name}.json").write_text(file.to_json(), "utf-8")
    return file.to_json()


def main() -> None:
    module = read_model(MODEL, CompileOptions(start="gk")).module
    kernel = next(op for op in module.walk() if isinstance(op, KernelOp))
    entry = TunedSchedule("matmul", kernel_key(kernel, TARGET, 1), target_text(TARGET), 1, 2.0, 1.0, SCHEDULE)
    right = write("right", entry)
    write("stale", replace(entry, key="0" * 64))
    write("version", entry, "0.0.1")
    write("illegal", replace(entry, schedule=(*SCHEDULE[:6], SCHEDULE[10], *SCHEDULE[7:10], SCHEDULE[6])))
    (FOLDER / "format.json").write_text(right.replace('"format": 2', '"format": 99'), "utf-8")
    (FOLDER / "lines.json").write_text(right.replace('"    run S0"', "0"), "utf-8")


main()
