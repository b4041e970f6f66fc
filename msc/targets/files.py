"""Names of machines that are paths of files. Imports nothing: the cache asks before anything is loaded."""

from __future__ import annotations

SUFFIX = ".toml"


def is_file(name: str) -> bool:
    """Whether a name of a machine is the path of its file."""
    return name.endswith(SUFFIX)
