"""`msc verify`: every stage of a compilation against the interpreter."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from msc.driver.options import CompileOptions
from msc.driver.verbs.completion import files, one_of
from msc.driver.verbs.model_options import with_compile_options
from msc.driver.verbs.verb import COUNT, NUMBER, Verb, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msc.driver.verification.differential import Check

INTERPRETER = "interpreter"


@click.command(name="verify", cls=Verb)
@click.argument("model", shell_complete=files)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="@x.npy, or a literal like 2xf32=1,2.")
@click.option(
    "--random", "seed", type=COUNT, default=0, show_default=True, metavar="SEED", help="For all other inputs."
)
@click.option("--reference", metavar="MODEL", help="The graph that MODEL, a later stage, should compute.")
@click.option(
    "--against",
    default=INTERPRETER,
    show_default=True,
    metavar="PROGRAM",
    help="What the model is compared with; another program runs a file of its format itself.",
    shell_complete=one_of(lambda: (INTERPRETER, *_programs())),
)
@click.option("--atol", type=NUMBER, default=1e-5, show_default=True, help="Absolute tolerance.")
@click.option(
    "--rtol", type=NUMBER, default=1e-4, show_default=True, help="Relative tolerance, of the largest element."
)
@click.option("--loop-limit", type=COUNT, metavar="N", help="Interpret loops up to N operations.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@with_compile_options
def command(
    model: str,
    inputs: tuple[str, ...],
    seed: int,
    reference: str | None,
    against: str,
    atol: float,
    rtol: float,
    loop_limit: int | None,
    as_json: bool,
    options: CompileOptions,
) -> int:
    """Run MODEL after every pass, as loops and as C, and name the first step, kernel or op that diverges; exit 1 then.

    With --against PROGRAM, compare the outputs of a model file with those of a program that runs such files, and name
    the first operation that diverges.

    Example: msc verify lenet5.mir --random 7
    """
    from msc.driver.models.model_inputs import read_values
    from msc.driver.models.model_outputs import Tolerance
    from msc.driver.verification.differential import LOOP_LIMIT, Settings, verify_model

    limit = LOOP_LIMIT if loop_limit is None else loop_limit
    settings = Settings(read_values(inputs), seed, Tolerance(atol, rtol), limit)
    if against not in (INTERPRETER, *_programs()):
        known = ", ".join((INTERPRETER, *_programs()))
        raise click.BadParameter(f"'{against}' is not one of {known}", param_hint="--against")
    if against != INTERPRETER:
        from msc.driver.verification.against_runtime import verify_against

        checks = verify_against(against, model, options, settings)
    else:
        checks = verify_model(model, options, settings, reference)
    say(json.dumps([asdict(check) for check in checks]) if as_json else _table(checks, _programs().get(against)))
    return int(any(check.diverges for check in checks))


def _programs() -> Mapping[str, str]:
    """The programs that run files of some format, and what each is called."""
    from msc.formats.registry import FORMATS

    return {package: title for each in FORMATS.found() for package, title in each.references.items()}


def _table(checks: Sequence[Check], title: str | None) -> str:
    """For people; `title` is the program that was compared with, None for the interpreter."""
    lines = [f"{'stage':<7}{'after':<22}{'of':<34}{'verdict':<11}{'max error':>10}"]
    lines += [_line(check) for check in checks]
    last = checks[-1]
    if last.diverges:
        place = f"after '{last.step}' of stage '{last.stage}'" if title is None else f"from {title}"
        lines.append(f"the {last.subject} diverges {place}: by up to {last.error:.3g}{_tail(last)}")
    else:
        agreed = "all steps agree with the interpreter" if title is None else f"all outputs agree with {title}"
        lines.append(f"{agreed}{_but(checks)}")
    return "\n".join(lines)


def _line(check: Check) -> str:
    error = f"{check.error:>10.2g}" if check.verdict in ("agrees", "diverges") else ""
    note = f"  {check.detail}" if check.detail and not check.diverges else ""
    return f"{check.stage:<7}{check.step:<22}{check.subject[:33]:<34}{check.verdict:<11}{error}{note}".rstrip()


def _but(checks: Sequence[Check]) -> str:
    """What makes the agreement worth little."""
    from msc.driver.verification.differential import ALL_NAN

    nothing = any(check.detail == ALL_NAN for check in checks)
    return f"; but {ALL_NAN}: look at the weights and the inputs" if nothing else ""


def _tail(check: Check) -> str:
    return f"; {check.detail}" if check.detail else ""
