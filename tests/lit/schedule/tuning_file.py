"""Writes tuning files for the one kernel of a module: right ones, and ones that are refused."""

import sys
from dataclasses import replace
from pathlib import Path

from msc.dialects.gk import KernelOp
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions
from msc.schedule.tuned_plans import TunedPlan, TuningFile, kernel_key, target_text
from msc.targets.catalogue import machine_named

MODEL, FOLDER = sys.argv[1], Path(sys.argv[2])
TARGET = machine_named("x86-64-v3")
PLAN = (
    "m extent 8 tile 3: S0.0 S1.0 S2.0",
    "n extent 16 tile 16 vector: S0.1 S1.1 S2.1",
    "do S0",
    "do S1 over k extent 32: S1.2",
    "do S2",
)


def write(name: str, entry: TunedPlan, version: str | None = None) -> str:
    file = TuningFile((entry,)) if version is None else TuningFile((entry,), version)
    (FOLDER / f"{name}.json").write_text(file.to_json(), "utf-8")
    return file.to_json()


def main() -> None:
    module = read_model(MODEL, CompileOptions(start="gk")).module
    kernel = next(op for op in module.walk() if isinstance(op, KernelOp))
    entry = TunedPlan("matmul", kernel_key(kernel, TARGET, 1), target_text(TARGET), 1, 2.0, 1.0, PLAN)
    right = write("right", entry)
    write("stale", replace(entry, key="0" * 64))
    write("version", entry, "0.0.1")
    write("illegal", replace(entry, plan=(*PLAN[:2], PLAN[4], PLAN[3], PLAN[2])))
    (FOLDER / "format.json").write_text(right.replace('"format": 1', '"format": 99'), "utf-8")
    (FOLDER / "lines.json").write_text(right.replace('"do S0"', "0"), "utf-8")


main()
