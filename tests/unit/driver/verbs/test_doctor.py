import importlib.metadata
import json
import os
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


def test_a_missing_compiler_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
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


def test_a_missing_package_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert (subjects()["xdsl"].remedy or "").endswith("pip install xdsl")


def install(folder: Path, name: str, summary: str, *files: str) -> None:
    """A distribution as pip leaves it: its metadata and the files that it lists."""
    info = folder / f"{name}-1.1.20.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.1.20\nSummary: {summary}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_another_package_named_msc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The index has one: installed, it is reported, with what puts ours in its place again."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert "other msc" not in subjects()
    install(tmp_path, "msc", "micro services")
    remedy = subjects()["other msc"].remedy or ""
    assert "uninstall msc &&" in remedy
    assert remedy.endswith(f"-e {Path(__file__).parents[4]}")
    (tmp_path / "msc-1.1.20.dist-info" / "METADATA").write_text("Name: msc\nVersion: 1\nSummary: like MindSpore\n")
    assert "other msc" not in subjects()


def test_what_packages_leave_at_the_top_level(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.setattr("msc.driver.verbs.doctor.required", lambda: ["xdsl"])
    install(
        tmp_path, "xdsl", "", "xdsl/__init__.py", "zoo/a.py", "_own/b.py", "xdsl.libs/c.so", "../../bin/d", "one.py"
    )
    finding = subjects()["top level"]
    assert "installs zoo:" in finding.found
    assert finding.remedy is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_home_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MSC_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    tmp_path.chmod(0)
    try:
        assert subjects()["cache"].remedy is not None
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_the_system_refuses_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an unreadable home is, to all but root."""

    def refused(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", refused)
    assert subjects()["cache"].remedy is not None
