"""Which code is a library's: it is run, not read."""

from __future__ import annotations

import sysconfig
from pathlib import Path

_PATHS = sysconfig.get_paths()
_LIBRARIES = (
    str(Path(__file__).parents[2]) + "/",
    *{_PATHS[k].rstrip("/") + "/" for k in ("stdlib", "platstdlib", "purelib", "platlib")},
    "/usr/lib/python3/",
    "<frozen",
)

_READ = str(Path(__file__).parents[2] / "train" / "step_loop.py")
"""Code of msc that is read: its loop of steps becomes one of the graph."""


def is_library_file(file: str) -> bool:
    """Whether a file belongs to Python, to msc or to an installed package."""
    return file != _READ and (file.startswith(_LIBRARIES) or "/site-packages/" in file or "/dist-packages/" in file)
