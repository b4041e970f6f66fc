"""The cache of artifacts: hits, damage, privacy, size, concurrent writers."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from msc.runtime import cache as cache_module
from msc.runtime.cache import Cache, cache_folder, open_cache, place_artifact

Weights = dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]
KEY = "ab" * 32


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    opened = open_cache(tmp_path / "cache")
    assert opened is not None
    return opened


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "artifact"
    path.write_bytes(bytes(range(256)) * 20)
    return path


def last_used(cache: Cache, entry: Path, when: float) -> None:
    os.utime(cache.memo.note(entry), (when, when))


def test_every_damaged_byte_is_a_miss(cache: Cache, artifact: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    assert cache.get(KEY) == path
    whole = path.read_bytes()
    for position in [*range(0, len(whole), 97), *range(len(whole) - 87, len(whole))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        assert cache.get(KEY) is None, position
        assert not path.exists()
    path.write_bytes(whole)
    assert cache.get(KEY) == path


def test_the_same_size_and_time_do_not_hide_damage(cache: Cache, artifact: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    assert cache.get(KEY) == path
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.get(KEY) is None
    assert not path.exists()


def test_a_sound_entry_that_was_touched_is_checked_and_kept(cache: Cache, artifact: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    os.utime(path, (1, 1))
    assert cache.memo.recall(path) is None
    assert cache.get(KEY) == path
    assert cache.memo.recall(path) == KEY


def test_an_entry_is_read_once(cache: Cache, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache.put(KEY, artifact)

    def read(*_: object) -> bytes:
        pytest.fail("read again")

    monkeypatch.setattr(cache_module, "_checksum", read)
    assert cache.get(KEY) == path


def test_a_library_that_moves_in_is_an_entry(cache: Cache, artifact: Path, tmp_path: Path) -> None:
    built = artifact.read_bytes()
    path = cache.take(KEY, artifact)
    assert path is not None
    assert not artifact.exists()
    cache.memo.note(path).unlink()
    assert cache.get(KEY) == path, "its checksum is right"
    cache.place(path, tmp_path / "out.so")
    assert (tmp_path / "out.so").read_bytes() == built


def test_a_library_that_cannot_move_in_is_as_good_as_before(
    cache: Cache, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = artifact.read_bytes()

    def refuse(*_: object) -> Path:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(Path, "replace", refuse)
    assert cache.take(KEY, artifact) is None
    place_artifact(artifact, tmp_path / "out.so")
    assert (tmp_path / "out.so").read_bytes() == built


def test_an_output_shares_nothing_with_the_cache(cache: Cache, artifact: Path, tmp_path: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    for name in ("first.so", "second.so"):
        place_artifact(path, tmp_path / name)
    (tmp_path / "first.so").write_bytes(b"edited")
    assert cache.get(KEY) == path
    assert (tmp_path / "second.so").read_bytes() == artifact.read_bytes()


def test_an_output_that_is_there_is_not_written_again(cache: Cache, artifact: Path, tmp_path: Path) -> None:
    path, out = cache.put(KEY, artifact), tmp_path / "out.so"
    assert path is not None
    cache.place(path, out)
    first = out.stat()
    cache.place(path, out)
    again = out.stat()
    assert again.st_ino == first.st_ino
    assert again.st_mtime_ns > first.st_mtime_ns, "newer than what it was made from, for make"


@pytest.mark.parametrize("edit", ["in place", "another", "gone", "a link"])
def test_an_output_that_was_edited_is_written_again(cache: Cache, artifact: Path, tmp_path: Path, edit: str) -> None:
    path, out = cache.put(KEY, artifact), tmp_path / "out.so"
    assert path is not None
    cache.place(path, out)
    match edit:
        case "in place":
            with out.open("r+b") as file:
                file.write(b"x")
        case "another":
            (tmp_path / "other").write_bytes(b"x" * artifact.stat().st_size)
            cache.place(cache.put("cd" * 32, tmp_path / "other") or out, out)
        case "gone":
            out.unlink()
        case _:
            out.rename(tmp_path / "moved.so")
            out.symlink_to(tmp_path / "moved.so")
    cache.place(path, out)
    assert out.read_bytes() == artifact.read_bytes()
    assert out.is_symlink() == (edit == "a link"), "links are followed"


@pytest.mark.parametrize("errno_", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_takes_nothing_keeps_nothing(
    cache: Cache, artifact: Path, errno_: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or a folder that may only be read: what is there is found, what is not is not kept."""
    path = cache.put(KEY, artifact)
    assert path is not None

    def refuse(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(errno_, os.strerror(errno_))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    cache.memo.note(path).unlink()
    assert cache.put("cd" * 32, artifact) is None
    assert cache.get(KEY) == path
    assert sorted(cache.folder.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_no_partial_entry(
    cache: Cache, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_: Path, target: BinaryIO) -> None:
        target.write(b"begun")
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(cache_module, "append_file", fill)
    assert cache.put(KEY, artifact) is None
    assert list(cache.folder.iterdir()) == []


@pytest.mark.parametrize("length", [0, 1, 86, 87, 88, 5119])
def test_truncation_is_a_miss(cache: Cache, artifact: Path, length: int) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    path.write_bytes(path.read_bytes()[:length])
    assert cache.get(KEY) is None


def test_an_entry_under_another_key_is_a_miss(cache: Cache, artifact: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    path.rename(cache.folder / f"{'cd' * 32}.so")
    assert cache.get("cd" * 32) is None


def test_what_is_no_plain_file_is_a_miss(cache: Cache, artifact: Path) -> None:
    path = cache.put(KEY, artifact)
    assert path is not None
    target = path.rename(cache.folder / "elsewhere")
    path.symlink_to(target)
    assert cache.get(KEY) is None
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert cache.get(KEY) is None
    path.unlink(missing_ok=True)
    path.mkdir()
    assert cache.get(KEY) is None
    assert cache.put(KEY, artifact) is None


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert open_cache(shared) is None
    (tmp_path / "file").write_text("")
    assert open_cache(tmp_path / "file") is None
    real = open_cache(tmp_path / "real")
    assert real is not None
    assert real.folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(real.folder)
    assert open_cache(tmp_path / "link") is None


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "msc"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_folder() == tmp_path / "x" / "msc"


def test_the_least_recently_used_entry_goes(cache: Cache, artifact: Path) -> None:
    small = Cache(cache.folder, maximum_bytes=12_000)
    keys = ["01" * 32, "02" * 32, "03" * 32]
    for age, key in zip((300, 200), keys, strict=False):
        path = small.put(key, artifact)
        assert path is not None
        last_used(small, path, time.time() - age)
    assert small.get(keys[0]) is not None
    small.put(keys[2], artifact)
    assert [small.get(key) is not None for key in keys] == [True, False, True]
    assert small.clear() == 2


def test_what_another_process_may_be_about_to_load_stays(cache: Cache, artifact: Path) -> None:
    small = Cache(cache.folder, maximum_bytes=1)
    keys = ["01" * 32, "02" * 32]
    for key in keys:
        small.put(key, artifact)
    assert all(small.get(key) is not None for key in keys)


def test_small_files_are_not_kept_without_end(cache: Cache, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MAXIMUM_NOTES", 8)
    for k in range(9):
        (cache.folder / f"{k}.json").write_text("[]")
        os.utime(cache.folder / f"{k}.json", (k, k))
    assert cache.put(KEY, artifact) is not None
    assert sorted(path.name for path in cache.folder.glob("*.json")) == [f"{k}.json" for k in range(4, 9)]
    assert cache.get(KEY) is not None


def test_what_a_killed_process_left_goes(cache: Cache, artifact: Path) -> None:
    abandoned, begun = cache.folder / ".old.so.x.tmp", cache.folder / ".new.so.x.tmp"
    for path in (abandoned, begun):
        path.write_bytes(b"half")
    os.utime(abandoned, (1, 1))
    assert cache.put(KEY, artifact) is not None
    assert not abandoned.exists()
    assert begun.exists()


def test_concurrent_writers_leave_a_whole_entry(cache: Cache, artifact: Path) -> None:
    threads = [threading.Thread(target=cache.put, args=(KEY, artifact)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get(KEY) is not None
    entry = cache.folder / f"{KEY}.so"
    assert set(cache.folder.iterdir()) == {entry, cache.memo.note(entry)}
