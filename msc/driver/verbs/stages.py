"""`msc stages`: the walk from model to artifact, as the stage table of a back end has it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import click

from msc.backends.registry import DEFAULT, find_backend
from msc.driver.verbs.completion import one_of, targets
from msc.driver.verbs.verb import Verb, say

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from msc.backends.backend import Backend
    from msc.backends.stage import PassRun, StageTable
    from msc.ir.contracts import Contract, Reason


@click.command(name="stages", cls=Verb)
@click.option(
    "--passes", is_flag=True, help="Show the passes of each stage, what each requires and makes, and why it runs there."
)
@click.option(
    "--target",
    default=DEFAULT,
    show_default=True,
    metavar="NAME",
    help="The back end whose stages.",
    shell_complete=one_of(targets),
)
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def command(passes: bool, target: str, as_json: bool) -> None:
    """List the stages from model to artifact: name, file extension and what is legal in each.

    Example: msc stages --passes
    """
    backend = find_backend(target)
    if as_json:
        say(_json(backend.table))
    elif passes:
        say("\n".join(_passes(backend)))
    else:
        _print_table(backend.table)


def _print_table(stages: StageTable) -> None:
    from msc.support.escaping import table_text

    rows = [(stage.name, stage.extension, stage.contents, stage.made_by) for stage in stages.stages]
    width = shutil.get_terminal_size().columns
    say(table_text(("stage", "file", "what stands in it", "made by"), rows, width))


def _passes(backend: Backend) -> Iterator[str]:
    """Stage by stage: the passes with their contracts, the properties of its border, its verifiers."""
    from msc.driver.passes.instances import pass_instances
    from msc.ir.contracts import contract_of, reasons

    passes = [p for stage in backend.table.ir for p in pass_instances(stage.passes, {})]
    explained = iter(zip(passes, reasons(passes), strict=True))
    for stage in backend.table.ir:
        if stage.passes:
            yield f"{stage.name}:"
        for _ in stage.passes:
            item, why = next(explained)
            yield from _pass(item, contract_of(item), why)
        if stage.properties:
            yield f"{stage.name} holds: {', '.join(stage.properties)}"
        if stage.verifiers:
            yield f"{stage.name}, verified wherever it comes in: {', '.join(run.name for run in stage.verifiers)}"
        if stage is not backend.table.last:
            yield ""


def _pass(item: ModulePass, contract: Contract, why: tuple[Reason, ...]) -> Iterator[str]:
    yield f"  {_with_options(item)}"
    for word, found in (("requires", contract.requires), ("ensures", contract.ensures), ("breaks", contract.breaks)):
        if found:
            yield f"    {word} {', '.join(map(str, found))}"
    for text, passes in groupby(sorted(why, key=lambda reason: reason.text), key=lambda reason: reason.text):
        yield f"    after {', '.join(reason.pass_name for reason in passes)}: {text}"


def _with_options(item: ModulePass) -> str:
    return str(item.pipeline_pass_spec()).replace("_", "-").replace("{}", "")


def _json(stages: StageTable) -> str:
    def plain(run: PassRun) -> str | dict[str, object]:
        return {"name": run.name, "options": dict(run.options)} if run.options else run.name

    return json.dumps(
        [
            {**vars(stage), "passes": [*map(plain, stage.passes)], "verifiers": [*map(plain, stage.verifiers)]}
            for stage in stages.stages
        ]
    )
