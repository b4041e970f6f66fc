"""Hashes of files are kept until the files change, whatever the change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msc.support import file_memo
from msc.support.file_memo import FileMemo
from msc.support.hashing import file_digest


@pytest.fixture
def memo(tmp_path: Path) -> FileMemo:
    (tmp_path / "notes").mkdir()
    return FileMemo(tmp_path / "notes")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"first")
    return path


def write_in_place(path: Path) -> None:
    path.write_bytes(b"other")


def write_and_set_back_the_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"other")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def put_another_in_its_place(path: Path) -> None:
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"other")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def truncate(path: Path) -> None:
    os.truncate(path, 2)


CHANGES = [write_in_place, write_and_set_back_the_time, put_another_in_its_place, truncate]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_shows_at_once(memo: FileMemo, file: Path, change: Callable[[Path], None]) -> None:
    assert memo.digest(file) == file_digest(file)
    assert memo.recall(file) == file_digest(file)
    change(file)
    assert memo.recall(file) is None
    assert memo.digest(file) == file_digest(file)


def test_a_file_is_read_once(memo: FileMemo, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = memo.digest(file)
    monkeypatch.delattr(file_memo, "file_digest")
    assert memo.digest(file) == first


def test_what_changes_while_it_is_read_is_not_noted(memo: FileMemo, file: Path) -> None:
    def look() -> str:
        write_and_set_back_the_time(file)
        return "seen"

    assert memo.find_out(file, look) == "seen"
    assert memo.recall(file) is None


def test_notes_of_another_boot_do_not_count(memo: FileMemo, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memo.digest(file)
    monkeypatch.setattr(file_memo, "_boot", lambda: "another")
    assert memo.recall(file) is None


def test_a_system_that_does_not_tell_its_boots_apart(
    memo: FileMemo, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_memo, "_boot", lambda: None)
    assert memo.digest(file) == file_digest(file)
    assert list(memo.folder.iterdir()) == []


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("changed", "now", "settles"),
    [
        (7 * SECOND, 7 * SECOND + SECOND // 2, False),
        (7 * SECOND, 9 * SECOND, True),
        (7 * SECOND + 1, 7 * SECOND + 30_000_000, True),
        (7 * SECOND + 1, 7 * SECOND, False),
    ],
    ids=["whole seconds and fresh", "whole seconds and old", "exact and old", "later than now"],
)
def test_when_a_later_change_would_show(changed: int, now: int, settles: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: now)
    assert file_memo.settled(changed) == settles


def test_what_does_not_settle_is_not_noted(memo: FileMemo, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: int) -> bool:
        return False

    monkeypatch.setattr(file_memo, "settled", never)
    assert memo.digest(file) == file_digest(file)
    assert memo.recall(file) is None


@pytest.mark.parametrize("text", ["", "\n", "no stamp\nvalue", "x" * 5000])
def test_a_damaged_note_is_none(memo: FileMemo, file: Path, text: str) -> None:
    memo.digest(file)
    memo.note(file).write_text(text, "utf-8")
    assert memo.recall(file) is None
    assert memo.digest(file) == file_digest(file)


def test_a_missing_file_is_an_error_and_a_missing_folder_is_none(tmp_path: Path, file: Path) -> None:
    nowhere = FileMemo(tmp_path / "nowhere")
    assert nowhere.digest(file) == file_digest(file)
    assert nowhere.recall(file) is None
    with pytest.raises(FileNotFoundError):
        nowhere.digest(tmp_path / "gone")
