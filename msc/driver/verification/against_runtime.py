"""`msc verify --against PROGRAM`: a compiled model and another program that runs its file, on the same inputs.

Where an output diverges, both run again with every value between the operations as an output, and the first operation
is named whose value does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from msc.dialects.arrays import Array
from msc.driver.artifacts.libraries import compile_module, library_of
from msc.driver.artifacts.model_on_call import made_for
from msc.driver.models.model_inputs import choose_inputs
from msc.driver.models.model_outputs import largest_error
from msc.driver.options import CompileOptions
from msc.driver.verification.differential import AGREES, DIVERGES, Check, Settings
from msc.formats.format import Reference
from msc.formats.registry import format_of
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.progress import progress
from msc.support.progress import step as progress_step


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
