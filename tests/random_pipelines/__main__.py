"""`python -m tests.random_pipelines --count 1000 --seed 0`: whose memory rows are, in random data pipelines."""

from __future__ import annotations

import argparse
import sys

from tests.random_pipelines.pipelines import Fault, Pipeline


def main() -> int:
    """Run the comparison; 1 if any pipeline shares memory that it must not share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first pipeline")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            Pipeline(seed).check()
        except Fault as fault:
            failed += 1
            print(f"seed {seed}: {fault}", file=sys.stderr)
    print(f"{options.count} pipelines, {failed} share memory")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
