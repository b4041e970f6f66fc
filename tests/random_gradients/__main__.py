"""`python -m tests.random_gradients --count 300 --seed 0`: gradients of random Cells beside PyTorch's autograd."""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tests.random_cells.compare import Difference
from tests.random_gradients.compare import check


def main() -> int:
    """Run the comparison; 1 if any gradient differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first Cell")
    parser.add_argument("--compiled", type=int, default=0, help="how many of them are compiled to C, too, in f32")
    options = parser.parse_args()
    start, silent, failed = time.perf_counter(), 0, 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            silent += check(seed) != ""
            if seed < options.seed + options.compiled:
                check(seed, backend="", dtype=np.float32)
        except Difference as difference:
            failed += 1
            print(difference, file=sys.stderr)
    seconds = time.perf_counter() - start
    compared = options.count - silent
    print(f"{options.count} cells in {seconds:.0f} s: {compared} compared, {silent} without a say, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
