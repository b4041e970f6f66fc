"""How many files one addition touches: what names an operator, a call, a format or an instruction that msc has.

    python tools/count_places.py

A file names a thing if it has one of its names as a string, or defines or imports it under one. A use is no place:
`apply("erf", x)` and `ms.ErfOp` are written where somebody wants the operator, and adding it needs none of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1] / "msc"
_USES = frozenset({"apply", "applied", "w", "emit", "node"})
"""Functions whose first argument says what they use."""


@dataclass(frozen=True)
class Addition:
    """`names` are those of a thing that is there, searched for in `rooms` of msc; `most` is the aim."""

    what: str
    example: str
    names: frozenset[str]
    rooms: tuple[str, ...]
    without: tuple[str, ...] = ()
    most: int = 0


def _operator(name: str, most: int) -> Addition:
    names = {name, f"ms.{name}", f"math.{name}", name.capitalize(), f"{name.capitalize()}Op"}
    return Addition("a scalar operator", name, frozenset(names), (".",), most=most)


def _instructions() -> Iterator[Addition]:
    """The units of CPUs, which machine files list; one file of a machine is where a unit is said."""
    heads = re.compile(r"^\[unit\.(\w+)\]", re.MULTILINE)
    names = {name for path in sorted((ROOT / "targets").glob("*.toml")) for name in heads.findall(path.read_text())}
    for name in sorted(names):
        yield Addition("an instruction", name, frozenset({name}), (".",), most=1)


_SORTING = "argsort Argsort radix_argsort insertion_argsort argsort-by-keys ArgsortByKeys".split()
_BELOW = tuple(
    "dialects/calls dialects/gk dialects/loop analysis graph_kernel schedule lowering codegen backends driver runtime"
    " interp/control.py interp/loop_operations.py".split()
)
"""Where `ms.argsort`, the operation on tensors, is gone."""


def additions() -> list[Addition]:
    """What is counted. Of `erf`, a second form stands beside the record: that in epilogues of matrix products."""
    formats = frozenset({".onnx", "onnx", "OnnxFormat", "msc.formats.onnx_files:OnnxFormat"})
    own = ("importers/onnx", "exporters/onnx")
    return [
        *(_operator(name, 4) for name in ("expm1", "log1p")),
        _operator("erf", 5),
        Addition("a call operation", "argsort", frozenset(_SORTING), _BELOW, most=6),
        Addition("a format", "onnx", formats, ("formats", "driver", "runtime", "backends"), own, most=3),
        *_instructions(),
    ]


def places(addition: Addition) -> list[Path]:
    """The files that name it. All machines that have an instruction count as one."""
    found: list[Path] = []
    for room in addition.rooms:
        path = ROOT / room
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            inside = file.relative_to(ROOT).as_posix()
            if not inside.startswith(addition.without or ("\0",)) and _names(file, addition.names):
                found.append(file.relative_to(ROOT))
    machines = [file for file in found if file.suffix == ".toml"]
    return [file for file in found if file not in machines[1:]]


def _names(file: Path, names: frozenset[str]) -> bool:
    if file.suffix in (".h", ".c", ".toml"):
        return not names.isdisjoint(re.findall(r"[\w.-]+?(?=_\{|\b)", file.read_text("utf-8")))
    return file.suffix == ".py" and not names.isdisjoint(_all_named(file))


@cache
def _all_named(file: Path) -> frozenset[str]:
    return frozenset(_named(ast.parse(file.read_text("utf-8"))))


def _named(tree: ast.Module) -> Iterator[str]:
    """Strings that are no documentation and no use, and names that are bound."""
    used = {
        id(node.args[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and _called(node.func) in _USES
    }
    used |= {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in used:
                yield text
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else ""


def main(counted: Sequence[Addition]) -> None:
    """Print a line for each, and the files."""
    for addition in counted:
        found = places(addition)
        print(f"{len(found)} of at most {addition.most}: {addition.what} ({addition.example})")
        for file in found:
            print(f"    msc/{file}")


if __name__ == "__main__":
    main(additions())
