import importlib.metadata
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from msc.driver.verbs.doctor import Finding, command, examine
from msc.runtime.cache import open_cache


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
    assert "MSC_CACHE_DIR" in (subjects()["cache"].remedy or "")


@pytest.mark.parametrize(
    "chosen",
    [{}, {"MSC_CACHE_DIR": "own"}, {"XDG_CACHE_HOME": "users"}, {"MSC_CACHE_DIR": "own", "XDG_CACHE_HOME": "users"}],
)
def test_the_cache_is_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: dict[str, str]
) -> None:
    """And doctor names the folder that models go to."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("MSC_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / chosen[name]) if name in chosen else "relative")
    cache = open_cache()
    assert cache is not None
    places = {"MSC_CACHE_DIR": tmp_path / "own", "XDG_CACHE_HOME": tmp_path / "users" / "msc"}
    assert cache.folder == next((places[name] for name in places if name in chosen), tmp_path / ".cache" / "msc")
    assert subjects()["cache"].found == f"{cache.folder} (writable)"


def test_a_folder_that_others_may_write_to_is_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    monkeypatch.setenv("MSC_CACHE_DIR", str(tmp_path))
    assert open_cache() is None
    assert subjects()["cache"].remedy is not None


def test_findings_are_printed_as_json() -> None:
    found = json.loads(CliRunner().invoke(command, ["--json"]).output)
    assert {"python", "C compiler", "cache"} <= {finding["subject"] for finding in found}


def test_msc_is_installed_from_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package index may have another package of that name."""

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert (subjects()["msc"].remedy or "").endswith(f"pip install -e {Path(__file__).parents[4]}")
    assert (subjects()["xdsl"].remedy or "").endswith("pip install xdsl")
