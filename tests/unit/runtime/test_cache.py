"""The cache of artifacts: hits, damage, privacy, size, concurrent writers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msc.runtime import cache as cache_module
from msc.runtime.artifact import load
from msc.runtime.build import BuildOptions
from msc.runtime.cache import Cache, artifact_key, build_cached, cache_folder, open_cache
from msc.runtime.program import CProgram

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


def test_a_second_build_is_a_hit_and_still_runs(
    cache: Cache, program: CProgram, weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_cached(program, weights, tmp_path, cache=cache)

    def build_again(*_: object) -> None:
        pytest.fail("built again")

    monkeypatch.setattr(cache_module, "build", build_again)
    second = build_cached(program, weights, tmp_path, cache=cache)
    assert first == second
    y, _ = load(second)(np.ones((2, 3), np.float32), np.zeros(1, np.int32))
    np.testing.assert_array_equal(y, [[1, 2, 3], [1, 2, 3]])


def test_the_key_covers_what_decides_the_bytes(
    program: CProgram, program_of: Callable[[str], CProgram], weights: Weights
) -> None:
    other = {"w": np.array([1, 2, 4], np.float32)}
    keys = {
        artifact_key(program, weights, BuildOptions()),
        artifact_key(program, other, BuildOptions()),
        artifact_key(program, weights, BuildOptions(flags=("-O1",))),
        artifact_key(program_of("int x;"), weights, BuildOptions()),
    }
    assert len(keys) == 4


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
        os.utime(path, (1e9 - age, 1e9 - age))
    assert small.get(keys[0]) is not None
    small.put(keys[2], artifact)
    assert [small.get(key) is not None for key in keys] == [True, False, True]
    assert small.clear() == 2


def test_concurrent_writers_leave_a_whole_entry(cache: Cache, artifact: Path) -> None:
    threads = [threading.Thread(target=cache.put, args=(KEY, artifact)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get(KEY) is not None
    assert [path.name for path in cache.folder.iterdir()] == [f"{KEY}.so"]
