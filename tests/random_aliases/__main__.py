"""`python -m tests.random_aliases --count 300 --seed 0`: who sees a write, in PyNative mode and in graphs."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.random_aliases.programs import Difference, check


def main() -> int:
    """Run the comparison; 1 if any program differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    options = parser.parse_args()
    failed, ends = 0, Counter[str]()
    for seed in range(options.seed, options.seed + options.count):
        try:
            ends[check(seed)] += 1
        except Difference as difference:
            failed += 1
            print(difference, file=sys.stderr)
    refused = ", ".join(f"{count} with {code}" for code, count in ends.items() if code)
    print(f"{options.count} programs: {ends['']} alike, refused alike: {refused or 0}, {failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
