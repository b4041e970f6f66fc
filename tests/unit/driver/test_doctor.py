from pathlib import Path

import pytest

from msc.driver.verbs.doctor import Finding, cache_folder, examine


def subjects() -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine()}


def test_a_machine_that_runs_the_tests_is_well() -> None:
    assert {"python", "xdsl", "C compiler", "threads", "CPU", "cache"} <= subjects().keys()
    assert subjects()["C compiler"].remedy is None


def test_a_missing_compiler_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    finding = subjects()["C compiler"]
    assert finding.remedy is not None
    assert "fix: " in str(finding)
    assert "MSC" not in str(finding)


def test_a_cache_folder_that_cannot_be_written_has_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MSC_CACHE_DIR", str(tmp_path / "not" / "yet"))
    assert subjects()["cache"].remedy is None
    monkeypatch.setenv("MSC_CACHE_DIR", "/proc/self/msc")
    assert subjects()["cache"].remedy is not None
    monkeypatch.delenv("MSC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "msc"
