"""`python -m tests.drawn_gradients [--only TEXT] [--calls N]`: every function; what is wrong is printed."""

from __future__ import annotations

import argparse
import sys
import warnings

from tests.drawn_gradients.calls import calls, functions
from tests.drawn_gradients.compare import wrong


def main() -> int:
    """Compare, and return how many functions are wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.drawn_gradients", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="functions whose name contains this")
    parser.add_argument("--calls", type=int, default=2, help="calls of each function")
    parser.add_argument("--order", type=int, default=2, help="of derivatives")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tried, without, failed = 0, list[str](), 0
    for name, function in functions():
        if options.only not in name:
            continue
        made = calls(name, function, options.calls)
        tried += len(made)
        if not made:
            without.append(name)
        problems = [p for call in made if (p := wrong(call, options.order))]
        failed += bool(problems)
        for problem in problems:
            print(f"{name}: {problem}", flush=True)
    print(f"{tried} calls, {failed} functions wrong; no drawn call gives floats of floats: {' '.join(without)}")
    return failed


if __name__ == "__main__":
    sys.exit(main() > 0)
