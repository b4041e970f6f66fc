"""`msc doctor`: what msc needs on this machine, whether it is there, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import msc
from msc.driver.verbs.verb import Verb
from msc.support.diagnostics import MscError
from msc.support.wording import counted


@dataclass(frozen=True)
class Finding:
    """One thing checked: what was found, and the command that mends it when it is not as needed."""

    subject: str
    found: str
    remedy: str | None = None

    def __str__(self) -> str:
        mark = "ok  " if self.remedy is None else "FAIL"
        line = f"{mark} {self.subject:<12} {self.found}"
        return line if self.remedy is None else f"{line}\n     {'':<12} fix: {self.remedy}"


@click.command(name="doctor", cls=Verb)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def command(as_json: bool) -> int:
    """Check Python, the packages, the C compiler, threads, the CPU and the cache folder; exit 1 if something is amiss.

    Example: msc doctor
    """
    findings = tuple(examine())
    click.echo(json.dumps([asdict(finding) for finding in findings]) if as_json else "\n".join(map(str, findings)))
    return 0 if all(finding.remedy is None for finding in findings) else 1


def examine() -> Iterator[Finding]:
    """All findings, in the order in which they are shown."""
    yield Finding("python", f"{platform.python_version()} at {sys.executable}")
    for package in ("msc", "xdsl", "numpy", "islpy"):
        yield _package(package, required=True)
    for package in ("onnx", "onnxruntime"):
        yield _package(package, required=False)
    yield from _compiler()
    yield _cpu()
    yield _cache_folder()


def _package(name: str, *, required: bool) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{sys.executable} -m pip install {_source(name)}"
        return (
            Finding(name, "not installed", remedy) if required else Finding(name, f"not installed (optional: {remedy})")
        )


def _source(package: str) -> str:
    """What pip installs a package from: msc from its own folder, since the index's package of that name is another."""
    folder = Path(msc.__file__).parents[1]
    return f"-e {shlex.quote(str(folder))}" if package == "msc" else package


def _compiler() -> Iterator[Finding]:
    from msc.runtime.toolchain import find_toolchain

    try:
        toolchain = find_toolchain()
    except MscError as error:
        diagnostic = error.diagnostics[0]
        yield Finding("C compiler", diagnostic.message, diagnostic.help)
        return
    yield Finding("C compiler", f"{' '.join(toolchain.command)}: {toolchain.version}")
    missing = "programs with -pthread do not link: models compile for one thread only"
    yield Finding("threads", "available" if toolchain.supports_threads else missing)


def _cpu() -> Finding:
    from msc.targets.catalogue import machine_named

    cpu = machine_named("native")
    simd = f"{cpu.vector_bytes * 8}-bit vectors{', FMA' if cpu.fma else ''}"
    return Finding(
        "CPU", f"{platform.machine()}, {simd}, {counted(cpu.cores, 'core')}, flags {' '.join(cpu.flags) or 'none'}"
    )


def _cache_folder() -> Finding:
    """Ours alone and writable; one that does not exist yet is decided by the nearest folder above that does."""
    from msc.runtime.cache import cache_folder, is_private

    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        if nearest == folder and not is_private(folder):
            return _unusable(f"{folder} is another user's, or others may write to it: it is not used")
        with tempfile.TemporaryFile(dir=nearest):
            return Finding("cache", f"{folder} (writable)")
    except OSError as error:
        return _unusable(f"{folder}: {error.strerror}")


def _unusable(problem: str) -> Finding:
    return Finding("cache", problem, "export MSC_CACHE_DIR=$HOME/.msc-cache")
