"""`python -m tests.zoo_gradients [NETWORK ...] [--ways PyNative,graph,C]`: the zoo's gradients beside PyTorch's."""

from __future__ import annotations

import argparse
import sys
import time

from tests.unit.model_zoo.small_networks import NETWORKS
from tests.zoo_gradients.compare import WAYS, Wrong, check


def main() -> int:
    """Compare networks, in inference and in training; 1 if a gradient differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    failed = 0
    for name in options.networks:
        for training in (False, True):
            start, mode = time.perf_counter(), "training" if training else "inference"
            try:
                error = check(name, training=training, ways=options.ways.split(","))
                print(f"{name:10} {mode:10} {error:.1e} {time.perf_counter() - start:6.1f} s")
            except Wrong as wrong:
                failed += 1
                print(f"{name:10} {mode:10} {wrong}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
