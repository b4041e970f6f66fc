"""The C compilers that this machine has; without any, tests that build fail."""

from __future__ import annotations

import shutil

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["gcc"]
