"""Compares the modes on many programs: `python -m tests.stale_graphs --count 2000`."""

from __future__ import annotations

import argparse
import sys

from tests.stale_graphs.programs import difference

COMPILED = 50
"""One program of so many is compiled to C; the others run by the interpreter, from the same graphs."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.start, given.start + given.count):
        found = difference(seed, "" if seed % COMPILED == 0 else "interpreter")
        if found is not None:
            wrong += 1
            print(found, end="\n\n", flush=True)
    print(f"{wrong} of {given.count} programs differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
