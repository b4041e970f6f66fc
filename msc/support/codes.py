"""The registry of diagnostic codes: what `msc explain MSC0201` shows. One entry a code, one table a family."""

from __future__ import annotations

from collections.abc import Mapping

from msc.support.code_tables import (
    calls,
    data,
    davinci,
    files,
    importing,
    internal,
    parallel,
    passes,
    python_api,
    quantisation,
    syntax,
    targets,
    verification,
    weights,
)
from msc.support.code_tables.entry import Code

CODES: Mapping[str, Code] = {
    entry.code: entry
    for table in (
        files,
        syntax,
        verification,
        weights,
        passes,
        targets,
        calls,
        importing,
        python_api,
        quantisation,
        internal,
        davinci,
        parallel,
        data,
    )
    for entry in table.CODES
}
"""Every code of msc, in the order of the families."""

__all__ = ["CODES", "Code"]
