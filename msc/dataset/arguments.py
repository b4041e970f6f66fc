"""What data sets check of their arguments: MSC0871."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, cast

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.support.argument_values import described, file_path
from msc.support.diagnostics import did_you_mean


def refuse(name: str, value: object, wanted: str, *, is_type: bool = False, advice: str | None = None) -> NoReturn:
    """Raise MSC0871 for an argument."""
    kind = ApiTypeError if is_type else ApiValueError
    raise kind("MSC0871", f"{name} is {described(value)}; it takes {wanted}", help=advice)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer of `least` or more, NumPy's too."""
    wanted = f"an integer of {least} or more"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        refuse(name, value, wanted, is_type=True)
    number = int(value)
    if not least <= number <= sys.maxsize:
        refuse(name, number, wanted)
    return number


def optional_count(name: str, value: Any, least: int = 1) -> int | None:
    """As `count`; None stays None."""
    return None if value is None else count(name, value, least)


def workers(value: Any) -> int:
    """How many threads transform rows. More than there are cores is no mistake."""
    return 1 if value is None else count("num_parallel_workers", value)


def shards(num_shards: Any, shard_id: Any) -> tuple[int, int] | None:
    """The number of shards and which one is read; None for all rows."""
    if num_shards is None and shard_id is None:
        return None
    if num_shards is None or shard_id is None:
        missing = "num_shards" if num_shards is None else "shard_id"
        refuse(missing, None, "an integer: num_shards and shard_id are given together")
    number, own = count("num_shards", num_shards), count("shard_id", shard_id, 0)
    if own >= number:
        refuse("shard_id", own, f"an integer below num_shards, which is {number}")
    return number, own


def folder(name: str, value: Any) -> Path:
    """A folder that is there. Raises MSC0870 for one that is not."""
    path = file_path(name, value, "the path of a folder")
    if not path.is_dir():
        reason = "is not a folder" if path.exists() else "does not exist"
        raise ApiValueError("MSC0870", f"{name} '{path}' {reason}")
    return path


def files(name: str, value: Any) -> list[Path]:
    """The files that a path, a pattern with * or ?, or a list of paths names, in order. Raises MSC0870."""
    given: list[Any] = list(cast("list[Any]", value)) if isinstance(value, list | tuple) else [value]
    found: list[Path] = []
    for item in given:
        path = file_path(name, item)
        if any(mark in path.name for mark in "*?["):
            found += sorted(path.parent.glob(path.name))
        else:
            found.append(path)
    if not found:
        raise ApiValueError("MSC0870", f"{name} {described(value)} names no file")
    for path in found:
        if not path.is_file():
            message = f"'{path}' is a folder" if path.is_dir() else f"there is no file '{path}'"
            raise ApiValueError("MSC0870", f"{name}: {message}")
    return found


def names(argument: str, value: Any) -> tuple[str, ...]:
    """One name of a column, or several. Raises MSC0871, also for a name that comes twice."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, Iterable):
        refuse(argument, value, "a name of a column, or a list of them", is_type=True)
    found = tuple(cast("Iterable[Any]", items))
    if not all(isinstance(item, str) and item for item in found) or not found:
        refuse(argument, value, "a name of a column, or a list of them", is_type=True)
    if len(set(found)) != len(found):
        refuse(argument, ", ".join(found), "names that differ")
    return found


def known(argument: str, wanted: tuple[str, ...], columns: tuple[str, ...]) -> tuple[int, ...]:
    """The places of columns. Raises MSC0873."""
    for name in wanted:
        if name not in columns:
            near = did_you_mean(name, columns)
            raise ApiValueError("MSC0873", f"{argument}: there is no column '{name}', but {listed(columns)}", help=near)
    return tuple(columns.index(name) for name in wanted)


def listed(columns: tuple[str, ...]) -> str:
    """Columns in a message."""
    return ", ".join(f"'{name}'" for name in columns)
