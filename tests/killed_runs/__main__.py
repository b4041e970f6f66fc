"""`python -m tests.killed_runs [KIND ...] --count 20 --seed 0`: runs killed at random moments beside whole ones.

A kind is a data set, an optimiser and callbacks. Each run is killed up to three times, with SIGKILL, and goes on from
its newest checkpoint: it ends in the bits of a run that nobody killed, and takes the same rows in the same order.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.killed_runs.killing import KINDS, check, whole_run

KILLS = 3


def main() -> int:
    """Run the series; 1 if a run ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", default=list(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--count", type=int, default=20, help="runs of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failed = 0
    for kind in options.kinds:
        start, killed, chance = time.perf_counter(), 0, random.Random(options.seed)
        with tempfile.TemporaryDirectory() as name:
            whole = whole_run(kind, Path(name) / "whole")
            for number in range(options.count):
                try:
                    killed += check(kind, Path(name) / str(number), whole, KILLS, chance)
                except AssertionError as error:
                    failed += 1
                    print(error, file=sys.stderr)
        seconds = time.perf_counter() - start
        print(f"{kind:10} {options.count} runs, killed {killed} times, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
