"""`python -m tests.random_cells --count 500 --compiled 40`: random Cells in PyNative mode, as graphs and in NumPy."""

from __future__ import annotations

import argparse
import sys
import time

from tests.random_cells.compare import Difference, check


def main() -> int:
    """Run the comparison; 1 if any Cell differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--compiled", type=int, default=0, help="how many of them are compiled to C, too")
    options = parser.parse_args()
    start, whole, split, failed = time.perf_counter(), 0, 0, 0
    for seed in range(options.start, options.start + options.count):
        try:
            story = check(seed)
            if seed < options.start + options.compiled:
                check(seed, backend="")
        except Difference as difference:
            failed += 1
            print(difference, file=sys.stderr)
            continue
        whole += "split" not in story and "not compiled" not in story
        split += "split" in story
    seconds = time.perf_counter() - start
    print(f"{options.count} cells in {seconds:.0f} s: {whole} one graph, {split} with splits, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
