"""Checks between stages: only operations of the stage's closed list, in the places where they belong.

A stage's verifiers run too wherever a module comes in, from a file or from the passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from msc.backends.stage import Stage
from msc.dialects.ms import MS
from msc.dialects.ms.structure import ParameterOp
from msc.driver.passes.instances import pass_instances
from msc.driver.passes.pass_manager import AfterPass, PassManager, with_source_lines
from msc.driver.passes.registry import find_property
from msc.ir.donation import donation_diagnostics
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError, first_of_each, raise_any


def verify_stage(
    module: ModuleOp, stage: Stage, context: Context, sources: Mapping[str, str], others: Sequence[Stage] = ()
) -> None:
    """What is done wherever a module of `stage` comes in: `check_stage`, then `run_verifiers`.

    A module of one of `others` instead is one mistake: one error, which says so.
    """
    try:
        check_stage(module, stage)
    except MscError as error:
        actual = next((other for other in others if not stage_diagnostics(module, other)), None)
        found = error.diagnostics if actual is None else (_of_stage(actual, error.diagnostics[0]),)
        raise MscError(*with_source_lines(found, sources)) from error
    run_verifiers(module, stage, context, sources)


def _of_stage(stage: Stage, diagnostic: Diagnostic) -> Diagnostic:
    return replace(diagnostic, help=f"this is a module of stage '{stage.name}': --from {stage.name} reads it as one")


def run_verifiers(
    module: ModuleOp, stage: Stage, context: Context, sources: Mapping[str, str], after: AfterPass | None = None
) -> None:
    """Run the passes that change nothing and raise what is wrong; `after` is called after each."""
    manager = PassManager(context, sources, verify_each=False, after_pass=after, change=False)
    manager.run(module, pass_instances(stage.verifiers, {}))


def check_stage(module: ModuleOp, stage: Stage) -> None:
    """Raises one MscError with all `stage_diagnostics`."""
    raise_any(stage_diagnostics(module, stage))


def stage_diagnostics(module: ModuleOp, stage: Stage) -> tuple[Diagnostic, ...]:
    """An MSC0209 for the operations that are not of `stage`, one for each of its properties that the module lacks, and
    what else is wrong in it.
    """
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    donations = (diagnostic for function in functions for diagnostic in donation_diagnostics(function))
    unlisted = first_of_each(_unlisted(module, stage), lambda _: stage.name)
    return (*unlisted, *_nested(module, stage), *_violations(module, stage), *donations)


def _unlisted(module: ModuleOp, stage: Stage) -> Iterator[Diagnostic]:
    for op in _outside_initialisers(module):
        if op.name not in stage.legal and f"{op.name.partition('.')[0]}.*" not in stage.legal:
            yield _illegal(op, stage)


def _outside_initialisers(module: ModuleOp) -> Iterator[Operation]:
    """All operations but those in the regions of derived parameters, which are `ms` until the very end."""
    yield module
    for op in module.ops:
        yield from (op,) if isinstance(op, ParameterOp) else op.walk()


def _nested(module: ModuleOp, stage: Stage) -> Iterator[Diagnostic]:
    for op in module.ops:
        if isinstance(op, ModuleOp):
            advice = "a file holds one module: functions stand inside its braces, or all without any"
            yield replace(_illegal(op, stage, " inside a module"), help=advice)


def _violations(module: ModuleOp, stage: Stage) -> Iterator[Diagnostic]:
    for name in stage.properties:
        yield from first_of_each(_violations_of(name, module, stage), lambda _, name=name: name)


def _violations_of(name: str, module: ModuleOp, stage: Stage) -> Iterator[Diagnostic]:
    holds = find_property(name)
    for found in holds.violations(module):
        message = f"stage '{stage.name}' holds {holds.needs}: '{found.op.name}' {found.reason}"
        yield Diagnostic("MSC0209", message, source_location(found.op), help=_advice(found.op, stage))


def _illegal(op: Operation, stage: Stage, place: str = "") -> Diagnostic:
    message = f"'{op.name}' is not an operation of stage '{stage.name}'{place}"
    return Diagnostic("MSC0209", message, source_location(op), help=_advice(op, stage))


def _advice(op: Operation, stage: Stage) -> str | None:
    """The operation on tensors that is called the same, where the stage has those and this is none."""
    name = f"ms.{op.name.partition('.')[2]}"
    known = {operation.name for operation in MS.operations}
    return f"{name} computes on tensors" if "ms.*" in stage.legal and op.name not in known and name in known else None
