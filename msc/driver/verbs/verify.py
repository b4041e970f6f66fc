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
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from msc.dialects.arrays import Array
from msc.driver.artifacts.libraries import compile_module, library_of
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.models.model_inputs import choose_inputs
from msc.driver.models.model_outputs import largest_error
from msc.driver.verification.differential import AGREES, DIVERGES, Check, Settings
from msc.formats.format import Reference
from msc.formats.registry import format_of
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.progress import progress
from msc.support.progress import step as progress_step

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


# `msc verify --against PROGRAM`: a compiled model and another program that runs its file, on the same inputs.
#
# Where an output diverges, both run again with every value between the operations as an output, and the first operation
# is named whose value does.
@progress()
def verify_against(program: str, model: str, options: CompileOptions, settings: Settings) -> tuple[Check, ...]:
    """The outputs in order; behind one that diverges, the first operation that does, if it still does.

    Raises MSC0008 for a model that the program does not run, MSC0717 without the packages, MSC0721 where the program
    fails, and what compiling raises.
    """
    found = format_of(model)
    if found is None or program not in found.references:
        help_ = "without --against, a model of any stage is compared with the interpreter"
        raise MscError(Diagnostic("MSC0008", f"--against {program} does not run '{model}'", help=help_))
    found.reference(program, model, options.reading())  # without its packages nothing is compiled
    progress_step("compiling")
    (options, compiled), taken = made_for(options, settings.given, lambda o: (o, library_of(model, o).load()))
    arrays = choose_inputs(compiled.signature.inputs, taken, settings.seed)
    inputs = {t.name: array for t, array in zip(compiled.signature.inputs, arrays, strict=True)}
    reference = found.reference(program, model, options.reading())
    progress_step(reference.title)
    given = compiled.results(*inputs.values()), reference.results(inputs)
    checks = list(_compared(program, reference.outputs(), "output", *given, settings))
    if checks[-1].diverges and (first := _first(program, reference, model, inputs, options, settings)) is not None:
        checks.append(first)
    return tuple(checks)


def _compared(
    program: str, names: Sequence[str], what: str, found: Sequence[Array], expected: Sequence[Array], settings: Settings
) -> Iterator[Check]:
    """The checks up to the first that diverges."""
    for name, got, wanted in zip(names, found, expected, strict=True):
        error = largest_error(got, wanted)
        agrees = settings.tolerance.scaled(wanted).agree(got, wanted)
        detail = "" if agrees or (got.shape, got.dtype) == (wanted.shape, wanted.dtype) else _kinds(got, wanted)
        yield Check("so", program, f"{what} {name}", AGREES if agrees else DIVERGES, error, detail)
        if not agrees:
            return


def _first(
    program: str,
    reference: Reference,
    model: str,
    inputs: dict[str, Array],
    options: CompileOptions,
    settings: Settings,
) -> Check | None:
    """The first operation whose value diverges when all are outputs."""
    progress_step("values between the operations")
    with suppress(MscError):  # a value between may be none that msc or the program gives: a sequence, for one
        whole, imported, labels = reference.with_all_values()
        compiled = compile_module(imported.module, imported.weights, options, name=model, use_cache=False)
        found = compiled.results(**inputs)
        for check in _compared(program, whole.outputs(), "value", found, whole.results(inputs), settings):
            if check.diverges:
                name = check.subject.removeprefix("value ")
                detail = "; ".join(filter(None, (f"it is the first: of {labels.get(name, name)}", check.detail)))
                return replace(check, detail=detail)
    return None


def _kinds(got: Array, wanted: Array) -> str:
    return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
