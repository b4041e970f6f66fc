"""`msc tune`: search for faster schedules by measurement."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, Verb, say
from msc.support.diagnostics import Diagnostic, MscError


@click.command(name="tune", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("-o", "--output", "out", metavar="FILE", help="Where to write what was found. [default: MODEL.tune.json]")
@click.option("--budget", default="60s", show_default=True, metavar="TIME", help="How long to search: 90s, 5m, 1h.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option(
    "--random", "seed", type=COUNT, default=0, show_default=True, metavar="SEED", help="For all other inputs."
)
@click.option("--force", is_flag=True, help="Let FILE replace one that msc did not write.")
@click.option("--quiet", is_flag=True, help="Do not tell what is found on the way.")
@with_compile_options
def command(
    model: str,
    out: str | None,
    budget: str,
    inputs: tuple[str, ...],
    seed: int,
    force: bool,
    quiet: bool,
    options: CompileOptions,
) -> None:
    """Time schedules of MODEL's kernels on this machine and write those that beat msc's own choice, for --tuned.

    Example: msc tune lenet5.mir --budget 60s && msc compile lenet5.mir --tuned lenet5.tune.json -o lenet5.so
    """
    from msc.driver.compile import stem_of
    from msc.driver.models.model_inputs import read_values
    from msc.driver.reports.benchmark import Workload
    from msc.driver.tuner.tuning import tune
    from msc.schedule.tuning.tuned_schedules import is_tuning
    from msc.support.files import file_to_write
    from msc.support.outputs import OutputGuard, OutputSet

    if options.tuned is not None:
        raise MscError(Diagnostic("MSC0014", "--tuned has no effect here: the search begins at msc's own choice"))
    path = file_to_write(out) if out is not None else Path(f"{stem_of(model, options.backend)}.tune.json")
    workload = Workload(read_values(inputs), seed, warm_up=3, seconds=0.2)
    seconds, search = parse_duration(budget), None
    try:
        # The file is opened first: whether it can be written is told before the time is spent.
        with OutputSet(OutputGuard((Path(model),), force)) as files, files.open(path, is_tuning) as file:
            search = tune(model, options, workload, seconds, _silent if quiet else _tell)
            file.write(search.found.to_json().encode("utf-8"))
    except MscError as error:
        if search is None:
            raise
        raise _kept(error, search.found.to_json()) from error
    if search.ended_by is not None:
        raise search.ended_by


def _kept(error: MscError, text: str) -> MscError:
    """The error, with what was found in a file of the temporary folder, if there is room."""
    import tempfile
    from dataclasses import replace

    with suppress(OSError), tempfile.NamedTemporaryFile("w", prefix="msc-tune-", suffix=".json", delete=False) as file:
        file.write(text)
        return MscError(replace(error.diagnostics[0], help=f"what was found is in '{file.name}'"))
    return error


def _tell(line: str) -> None:
    say(line, err=True)


def _silent(line: str) -> None:
    """What --quiet does with a line."""


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)")


def parse_duration(text: str) -> float:
    """Seconds from `60`, `0.5s`, `5m` or `1h`. Raises MSC0008."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise MscError(Diagnostic("MSC0008", f"'{text}' is not a time; write 60s, 5m or 1h"))
    return float(match.group(1)) * _SECONDS[match.group(2)]
