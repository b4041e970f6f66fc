"""Memory of a call beside that of ONNX Runtime's arena: `python -m benchmarks.memory --all --write`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.arena import arena_bytes
from benchmarks.models import MODELS
from benchmarks.pages import write_marked
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions

PAGE = Path(__file__).with_name("README.md")


@dataclass(frozen=True)
class Memory:
    """Bytes of a call on one thread: msc's planned workspace, its local arrays, the results, ONNX Runtime's arena.

    The arena is grown in both ways.
    """

    model: str
    workspace: int
    stack: int
    results: int
    arena: int
    requested: int

    @property
    def share(self) -> float:
        """Workspace and results, which the arena holds too, of the arena. Both engines have more on their stacks."""
        return (self.workspace + self.results) / self.arena


def memory(name: str) -> Memory:
    """What a model of the benchmarks takes."""
    path = MODELS[name].onnx
    signature = generate_c(compile_model(str(path), CompileOptions())).signature
    results = sum(tensor.bytes for tensor in signature.outputs)
    arenas = arena_bytes(path, "doubled"), arena_bytes(path, "requested")
    return Memory(name, signature.workspace_bytes, signature.stack_bytes, results, *arenas)


def table(rows: Sequence[Memory]) -> str:
    """The rows, those with the largest share first."""
    head = ["model", "workspace", "results", "arena", "share", "arena as requested", "stack"]
    lines = [
        [
            *(f"`{r.model}`", *map(_kib, (r.workspace, r.results, r.arena))),
            *(f"{r.share:.2f}", _kib(r.requested), _kib(r.stack)),
        ]
        for r in sorted(rows, key=lambda r: -r.share)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] + ["---:"] * 6, *lines))


def _kib(count: int) -> str:
    return f"{count / 1024:.1f}"


@click.command(epilog="Example: python -m benchmarks.memory lenet5 resnet8")
@click.argument("models", nargs=-1, type=click.Choice(list(MODELS)))
@click.option("--all", "every", is_flag=True, help="Every model.")
@click.option("--write", is_flag=True, help="Write the table into benchmarks/README.md.")
def main(models: tuple[str, ...], every: bool, write: bool) -> None:
    """KiB of msc's workspace and results, and of ONNX Runtime's arena; exit 1 where the first is above the second."""
    rows = [memory(name) for name in (MODELS if every else models)]
    click.echo(table(rows))
    if write:
        write_marked(PAGE, "memory", table(rows))
    sys.exit(any(row.share > 1 for row in rows))


if __name__ == "__main__":
    main()
