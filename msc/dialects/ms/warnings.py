"""What a module keeps for its users to know: `ms.warnings`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from msc.dialects.ms.attributes import MS_WARNINGS


def warnings_of(module: ModuleOp) -> tuple[str, ...]:
    """The sentences that a module keeps."""
    found = module.attributes.get(MS_WARNINGS)
    items = cast("ArrayAttr[StringAttr]", found) if isinstance(found, ArrayAttr) else ()
    return tuple(item.data for item in items)


def keep_warnings(module: ModuleOp, texts: Iterable[str]) -> None:
    """Keep sentences with a module, besides those that it has."""
    kept = dict.fromkeys((*warnings_of(module), *texts))
    if kept:
        module.attributes[MS_WARNINGS] = ArrayAttr(map(StringAttr, kept))
