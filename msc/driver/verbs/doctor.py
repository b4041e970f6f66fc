"""`msc doctor`: what msc needs on this machine, whether it is there, and how to get it."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import msc
from msc.driver.verbs.verb import Verb, say
from msc.formats.registry import FORMATS
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
    say(json.dumps([asdict(finding) for finding in findings]) if as_json else "\n".join(map(str, findings)))
    return 0 if all(finding.remedy is None for finding in findings) else 1


def examine() -> Iterator[Finding]:
    """All findings, in the order in which they are shown."""
    yield Finding("python", f"{platform.python_version()} at {sys.executable}")
    yield Finding("msc", f"{msc.__version__} ({msc.DISTRIBUTION}) at {_folder() / 'msc'}")
    yield from _strangers()
    for package in ("xdsl", "numpy", "islpy"):
        yield _package(package, required=True)
    formats = FORMATS.found()
    for package in dict.fromkeys(p for each in formats for p in (*each.packages, *each.references)):
        yield _package(package, required=False)
    for each in formats:
        reads = "not a model" if each.holds == "weights" else "read and written" if each.writes else "read"
        found = f"{' '.join(each.extensions)}: {reads}; lacks {each.lacks}"
        yield Finding("format", f"{each.name} ({found})")
    yield from _compiler()
    yield from _ranks()
    yield _processor()
    yield _cache_folder()
    yield from _beside_packages()


def _package(name: str, *, required: bool) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        remedy = f"{sys.executable} -m pip install {name}"
        return (
            Finding(name, "not installed", remedy) if required else Finding(name, f"not installed (optional: {remedy})")
        )


def _strangers() -> Iterator[Finding]:
    """An installed distribution `msc` that is not ours: it writes into the folder `msc`, before or over our files."""
    for found in importlib.metadata.distributions(name="msc"):
        if "MindSpore" not in (found.metadata["Summary"] or ""):
            pip = f"{sys.executable} -m pip"
            again = f"{pip} install --force-reinstall --no-deps {_source()}"
            message = (
                f"the package 'msc' {found.version} of the index is installed: another program, in our folder 'msc'"
            )
            yield Finding("other msc", message, f"{pip} uninstall msc && {again}")
            return


def _source() -> str:
    """What pip installs msc from: the clone, or the name of a package that was installed without one."""
    clone = _folder()
    return f"-e {shlex.quote(str(clone))}" if (clone / "pyproject.toml").exists() else msc.DISTRIBUTION


def _folder() -> Path:
    """Where the package `msc` lies."""
    return Path(msc.__file__).parents[1]


def _beside_packages() -> Iterator[Finding]:
    """Other names than its own that a package puts at the top level, as `tests`: any `import tests` finds them."""
    for name in required():
        try:
            files = importlib.metadata.files(name) or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in files if len(file.parts) > 1}
        others = sorted(top for top in tops - {name} if top.isidentifier() and not top.startswith("_"))
        if others:
            message = (
                f"{name} also installs {', '.join(others)}: msc imports none of them, `import {others[-1]}` finds it"
            )
            yield Finding("top level", message)


def required() -> Iterator[str]:
    """The packages that msc's own brings with it."""
    with suppress(importlib.metadata.PackageNotFoundError):
        for requirement in importlib.metadata.requires(msc.DISTRIBUTION) or ():
            if ";" not in requirement:
                yield re.split(r"[^\w-]", requirement)[0]


def _ranks() -> Iterator[Finding]:
    """What programs of several ranks need, and no other."""
    from msc.runtime.mpi import INSTALL

    found = [name for name in ("mpirun", "mpicc") if shutil.which(name) is not None]
    text = " and ".join(found) if len(found) == 2 else f"not installed (optional: {INSTALL})"
    yield Finding("MPI", text)
    yield _package("mpi4py", required=False)


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


def _processor() -> Finding:
    from msc.targets.catalogue import machine_named

    machine = machine_named("native")
    simd = f"{machine.vector_bytes * 8}-bit vectors{', FMA' if machine.fma else ''}"
    flags = " ".join(machine.flags) or "none"
    return Finding("CPU", f"{platform.machine()}, {simd}, {counted(machine.cores, 'core')}, flags {flags}")


def _cache_folder() -> Finding:
    """Ours alone and writable; one that does not exist yet is decided by the nearest folder above that does."""
    from msc.runtime.cache import cache_folder, is_private

    folder = cache_folder()
    try:
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if nearest == folder and not is_private(folder):
            return _unusable(f"{folder} is another user's, or others may write to it: it is not used")
        with tempfile.TemporaryFile(dir=nearest):
            return Finding("cache", f"{folder} (writable)")
    except OSError as error:
        return _unusable(f"{folder}: {error.strerror}")


def _unusable(problem: str) -> Finding:
    return Finding("cache", problem, "export MSC_CACHE_DIR=$HOME/.msc-cache")
