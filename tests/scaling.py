"""Processor time of every pass for 100, 200 and 400 equal layers: `python -m tests.scaling norm`.

What `tests/unit/driver/test_scaling.py` counts for fewer layers, timed. The growth is what 200 more layers take, over
what 100 more take: 2 where time is in proportion to layers, 4 where it is to their square.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from msc.driver.compile import Step, compile_model, generate_c
from tests.unit.driver.test_scaling import MODELS, options_for, write_model

LAYERS = 100, 200, 400


def seconds_of(model: Path) -> dict[str, float]:
    """Processor time of each pass, with the verification before it."""
    seconds, last = defaultdict[str, float](float), time.process_time()

    def done(what: str) -> None:
        nonlocal last
        now = time.process_time()
        seconds[what] += now - last
        last = now

    def after_step(step: Step, module: ModuleOp) -> None:
        del module
        done(f"{step.stage}: {step.name.partition('{')[0]}")

    compilation = compile_model(str(model), options_for(model.parent), after_step=after_step)
    done("loop: verify")
    generate_c(compilation)
    done("c")
    return seconds


def main(name: str) -> None:
    """Print a line for each pass and one for all."""
    with tempfile.TemporaryDirectory() as folder:
        seconds_of(write_model(Path(folder), name, 1))
        first, second, third = (seconds_of(write_model(Path(folder), name, layers)) for layers in LAYERS)
    for what in third:
        print(f"{what:28}" + "".join(f"{row[what]:8.2f}" for row in (first, second, third)))
    one, two, three = (sum(row.values()) for row in (first, second, third))
    print(f"{'all':28}{one:8.2f}{two:8.2f}{three:8.2f}   growth {(three - two) / (two - one):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"What layers: {', '.join(MODELS)} [default: all].")
    models = parser.parse_args().models
    if unknown := [name for name in models if name not in MODELS]:
        parser.error(f"there are no layers {unknown[0]!r}; there are {', '.join(MODELS)}")
    for model_name in models or MODELS:
        main(model_name)
