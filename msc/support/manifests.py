"""Folders with a manifest of what msc wrote into them: that may be replaced, whatever else is there stays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import cast

from msc.support.files import MAXIMUM_SOURCE_BYTES
from msc.support.hashing import file_digest
from msc.support.plain_files import content

MANIFEST = "manifest.json"
FILES = "files"
"""The manifest's entry: file name to SHA-256; the manifest's own is empty."""


@dataclass(frozen=True)
class Manifest:
    """What the manifest of a folder says that msc wrote; nothing where there is none."""

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def of(folder: Path) -> Manifest:
        """Read the manifest of a folder."""
        return Manifest(folder, _files(folder / MANIFEST))

    def is_ours(self, path: Path) -> bool:
        """Whether a file is as it was written. Raises OSError."""
        below = path.is_relative_to(self.folder)
        wanted = self.files.get(path.relative_to(self.folder).as_posix() if below else path.name)
        return wanted is not None and (path.name == MANIFEST or file_digest(path) == wanted)

    def leftovers(self, names: set[str]) -> list[Path]:
        """What was written and nobody changed, but for `names`."""
        inside = [name for name in self.files if not PurePosixPath(name).is_absolute() and ".." not in name.split("/")]
        left = [self.folder / name for name in inside if name not in names]
        return [path for path in left if _holds(self, path)]


def manifest_text(files: Mapping[str, str], **more: object) -> str:
    """The text of a manifest: names to SHA-256, and whatever else it tells."""
    entries = {**files, MANIFEST: ""}
    return json.dumps({**more, FILES: dict(sorted(entries.items()))}, indent=2) + "\n"


def _holds(manifest: Manifest, path: Path) -> bool:
    with suppress(OSError):
        return manifest.is_ours(path)
    return False


def _files(path: Path) -> dict[str, str]:
    """None of anything that is not a manifest."""
    try:
        data: object = json.loads(content(path, MAXIMUM_SOURCE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    files = cast("dict[str, object]", data).get(FILES) if isinstance(data, dict) else None
    entries = cast("dict[str, object]", files) if isinstance(files, dict) else {}
    texts = {name: digest for name, digest in entries.items() if isinstance(digest, str)}
    return texts if MANIFEST in texts else {}
