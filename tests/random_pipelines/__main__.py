"""`python -m tests.random_pipelines --count 500 --seed 0`: random data pipelines, read in all ways.

Whose memory their rows are; and whether rows are the same compiled and row by row, resumed, by several workers and in
shards. With `--interpreted` what would be compiled is interpreted, which is faster.
"""

from __future__ import annotations

import argparse
import sys

from msc.dataset import pictures
from msc.frontend.modes import INTERPRETER, Wishes
from tests.random_pipelines.compiled import TransformedPictures, TransformedTexts
from tests.random_pipelines.pipelines import Fault, Pipeline


def main() -> int:
    """Run the comparison; 1 if any pipeline is at fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="of the first pipeline")
    parser.add_argument("--interpreted", action="store_true")
    options = parser.parse_args()
    if options.interpreted:
        pictures.WISHES = Wishes(INTERPRETER)
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            Pipeline(seed).check()
            TransformedPictures(seed).check()
            TransformedTexts(seed).check()
            TransformedPictures(seed).check_shards(seed % 4 + 1)
        except Fault as fault:
            failed += 1
            print(f"seed {seed}: {fault}", file=sys.stderr)
    print(f"{options.count} pipelines, {failed} at fault")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
