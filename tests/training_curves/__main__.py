"""`python -m tests.training_curves [NETWORK ...] [--steps N]`: losses of training runs beside PyTorch's.

LeNet-5, ResNet-8, an LSTM, a small GPT and a BERT layer unless networks are named; the names of rows of
`python -m benchmarks.training` are known, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.training.networks import TASKS
from tests.training_curves.compare import NETWORKS, Apart, check


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The networks to train and for how many steps."""
    known = [*NETWORKS, *TASKS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS), help=f"of {', '.join(known)}")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args(arguments)
    for name in options.networks:
        if name not in known:
            parser.error(f"there is no network '{name}': {', '.join(known)}")
    return options


def main() -> int:
    """Compare runs; 1 if one leaves PyTorch's."""
    options = parsed()
    failed = 0
    for name in options.networks:
        start = time.perf_counter()
        try:
            curves = check(name, options.steps)
            print(f"{name:20} {curves} {time.perf_counter() - start:6.1f} s", flush=True)
        except Apart as apart:
            failed += 1
            print(f"{name:20} {apart}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
