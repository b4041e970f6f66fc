"""`python -m msc.mindspore SCRIPT [ARGUMENTS]` runs a program that imports MindSpore, with msc in its place."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from msc.mindspore import paths


def main(arguments: list[str]) -> int:
    """Run a script whose `import mindspore` gives msc. 2 if there is none."""
    if not arguments or not Path(arguments[0]).is_file():
        print("usage: python -m msc.mindspore SCRIPT [ARGUMENTS]", file=sys.stderr)
        return 2
    paths.stand_in()
    sys.argv[:] = arguments
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
