"""Outcomes of checks in files of a JSON line each, so that a run that was stopped can go on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def keep(outcome: DataclassInstance, record: Path | None) -> None:
    """Add an outcome to a record, if there is to be one."""
    if record is not None:
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def kept(kind: type[T], record: Path | None) -> list[T]:
    """The outcomes in a record; none where there is no such file yet."""
    if record is None or not record.exists():
        return []
    return [kind(**json.loads(line)) for line in record.read_text("utf-8").splitlines()]
