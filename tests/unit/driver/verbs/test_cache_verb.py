import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.driver.cli import command
from msc.runtime.cache import open_cache
from msc.support.diagnostics import MscError


def test_its_size_and_clearing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MSC_CACHE_DIR", str(tmp_path / "cache"))
    cache = open_cache()
    assert cache is not None
    artifact = tmp_path / "a.so"
    artifact.write_bytes(bytes(5000))
    entry = cache.put("01" * 32, artifact)
    assert entry is not None
    (cache.folder / "note.json").write_text("[]")
    stranger = cache.folder / "mine.txt"
    stranger.write_text("")
    shown = json.loads(CliRunner().invoke(command, ["cache", "--json"]).output)
    assert (shown["models"], shown["bytes"], shown["cleared"]) == (1, entry.stat().st_size, False)
    assert CliRunner().invoke(command, ["cache", "--clear"]).exit_code == 0
    assert [*cache.folder.iterdir()] == [stranger]
    assert json.loads(CliRunner().invoke(command, ["cache", "--json"]).output)["models"] == 0


def test_a_folder_that_is_not_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("MSC_CACHE_DIR", str(tmp_path))
    result = CliRunner().invoke(command, ["cache"])
    assert isinstance(result.exception, MscError)
    assert result.exception.diagnostics[0].code == "MSC0013"
