"""`python -m tests.special_gradients`: every function in both modes and types; `--record` asks PyTorch first."""

from __future__ import annotations

import argparse
import sys

from tests.special_gradients.cases import CASES
from tests.special_gradients.evaluating import derivatives, direction_error
from tests.special_gradients.graph_mode import compiled
from tests.special_gradients.table import PATH, TOLERANCES, differences, expected, written


def record() -> None:
    """Write the table of what PyTorch gives."""
    from tests.special_gradients.reference import in_pytorch

    lines = [written(case, {dtype: in_pytorch(case, dtype) for dtype in TOLERANCES}) for case in CASES]
    PATH.write_text("".join(lines), "utf-8")


def compare(modes: list[str], pattern: str) -> int:
    """Print what differs, and return how often."""
    count = wrong = 0
    for dtype in TOLERANCES:
        table = expected(dtype)
        for case in CASES:
            for text in case.ours:
                if pattern not in text:
                    continue
                for mode in modes:
                    found = derivatives(text, case, dtype) if mode == "pynative" else compiled(text, case, dtype)
                    texts = differences(found, table[case.name], dtype, case)
                    if mode == "pynative" and (error := direction_error(text, case, dtype, found)):
                        texts.append(error)
                    count, wrong = count + 1, wrong + bool(texts)
                    if texts:
                        print(f"{text} at {case.inputs}, {dtype}, {mode}:", *texts, sep="\n    ", flush=True)
    print(f"{count} compared, {wrong} differ")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.special_gradients", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the table of what PyTorch gives")
    parser.add_argument("--mode", choices=["pynative", "graph"], help="one mode alone")
    parser.add_argument("--only", default="", metavar="TEXT", help="functions whose text contains this")
    options = parser.parse_args()
    if options.record:
        record()
    sys.exit(compare([options.mode] if options.mode else ["pynative", "graph"], options.only) > 0)
