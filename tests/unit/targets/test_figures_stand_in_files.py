"""A figure of a machine stands in a file of msc/targets and nowhere else.

What it looks like: a number with a name, at the top of a module that decides or writes code, whose name or docstring
speaks of cycles, latencies, ports, rates, lines, ways, pages or sizes of caches, of registers, or of the stack, of a
part of the peak, of what costs more or less, of instructions that something takes, of what was measured, or of what C
compilers unroll; or, where it decides, of vectors, lanes and registers, unless it says that it holds on every machine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import msc

PACKAGE = Path(msc.__file__).parent
WRITING, DECIDING = ("codegen",), ("analysis", "cost", "graph", "graph_kernel", "lowering", "poly", "schedule")
NAME = re.compile(
    r"(^|_)(CYCLES|LATENCY|PORTS?|GHZ|BANDWIDTH|RATE|WAYS|WAY|LINE|PAGE|L1|L2|L3|CACHES?|MEMORY|CORES|FMA)(_|$)"
    r"|BYTES_PER|REGISTER_BYTES|LINE_BYTES|PAGE_BYTES"
)
SAID = re.compile(
    r"\bcycles?\b|bytes a cycle|the first cache holds|L1 holds|lie in L[123]\b|in flight|\bGHz\b|what a core|latenc"
    r"|\bof the peak\b|line of a cache|cache sets|costs? (more|less)|waits? for about|\bwait for each other\b"
    r"|C compilers unroll|instructions (to|of)\b|\bmeasured\b",
    re.IGNORECASE,
)
COUNTED = re.compile(r"\b(vectors?|lanes?|registers?)\b", re.IGNORECASE)
OF_ALL = re.compile(r"\b(of no|whatever the|on every) machine\b")


def numbers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names at the top of a module that are numbers, with their docstrings."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.Assign(targets=[target], value=value):
                pass
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                pass
            case _:
                continue
        said = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            said = after.value.value
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if is_number(value):
            yield from ((name.id, said) for name in names if isinstance(name, ast.Name))


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or numbers, without any name."""
    numeric = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)
    constants = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plain = all(isinstance(node, numeric) for node in ast.walk(value))
    return plain and bool(constants) and all(type(c.value) in (int, float) for c in constants)


def figures(text: str, *, decides: bool = True) -> list[str]:
    """The names in a module that look like figures of a machine."""
    return [name for name, said in numbers(ast.parse(text)) if is_figure(name, " ".join(said.split()), decides)]


def is_figure(name: str, said: str, decides: bool) -> bool:
    counts = decides and COUNTED.search(said) and not OF_ALL.search(said)
    return bool(NAME.search(name) or SAID.search(said) or counts)


def test_it_is_seen() -> None:
    assert figures("L2_BYTES = 1 << 20") == ["L2_BYTES"]
    assert figures("PORTS, UPDATE_LATENCY = 2, 4") == ["PORTS", "UPDATE_LATENCY"]
    assert figures('HEAD = 0.6\n"""Cycles of each step: cycles for the loop."""') == ["HEAD"]
    assert figures('_TRANSFORMATION = 4.0\n"""Cycles to transform one vector of one place in a tile."""') == [
        "_TRANSFORMATION"
    ]
    assert figures('SHARE, PART = 0.75, 0.6\n"""Of the peak, that a product reaches."""') == ["SHARE", "PART"]
    assert figures('ROWS = 32\n"""Rows from which a copy costs less than it saves."""') == ["ROWS"]
    assert figures('MANY = 8\n"""Channels: so many fill half a line of a cache."""') == ["MANY"]
    assert figures('UNROLLED = 8\n"""Iterations of a loop that C compilers unroll."""') == ["UNROLLED"]
    assert figures('APART = 1.15\n"""Instructions of a lane that is stored apart (measured)."""') == ["APART"]
    assert figures('LEAST = 16\n"""Fewer would leave most lanes of a vector empty."""') == ["LEAST"]
    assert figures('WIDE = 4\n"""NR, in vectors, of a tile that reads few elements."""') == ["WIDE"]
    assert figures('MOST = 8\n"""Vectors that are written out, on every\nmachine: it bounds the code."""') == []
    assert figures('WASTE = 1.125\n"""Times its even share that the busiest thread may have."""') == []
    assert figures("TILES = (2, 4)\nNAME = 'x'\nLINES = machine.line") == []


def test_none_stands_outside_files_of_machines() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for package in (*DECIDING, *WRITING)
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for name in figures(path.read_text(encoding="utf-8"), decides=package in DECIDING)
    ]
    assert not found
