"""A figure of a machine stands in a file of msc/targets and nowhere else.

What it looks like: a number with a name, at the top of a module that decides or writes code, whose name or docstring
speaks of cycles, latencies, ports, rates, lines, ways, pages or sizes of caches, of registers, or of the stack, of a
part of the peak, of what costs more or less, of instructions that something takes, of what was measured, of fractals,
or of what C compilers unroll; or, where it decides, of vectors, lanes and registers, unless it says that it holds on
every machine. The same goes for fields, variables and defaults of arguments. Where msc decides, a larger number or a
fraction has a name, which says what it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msc

PACKAGE = Path(msc.__file__).parent
FEW = 8
"""Numbers up to this one count things of all kinds."""
WRITING, DECIDING = ("codegen",), ("analysis", "cost", "graph", "graph_kernel", "lowering", "poly", "schedule")
NAME = re.compile(
    r"(^|_)(CYCLES|LATENCY|PORTS?|GHZ|BANDWIDTH|RATE|WAYS|WAY|LINE|PAGE|L1|L2|L3|CACHES?|MEMORY|CORES|FMA)(_|$)"
    r"|BYTES_PER|REGISTER_BYTES|LINE_BYTES|PAGE_BYTES"
)
SAID = re.compile(
    r"\bcycles?\b|bytes a cycle|the first cache holds|L1 holds|lie in L[123]\b|in flight|\bGHz\b|what a core|latenc"
    r"|\bof the peak\b|line of a cache|cache sets|costs? (more|less)|waits? for about|\bwait for each other\b"
    r"|C compilers unroll|instructions (to|of)\b|\bmeasured\b|\bof a fractal\b|\bcubes? reads?\b",
    re.IGNORECASE,
)
COUNTED = re.compile(r"\b(vectors?|lanes?|registers?)\b", re.IGNORECASE)
OF_ALL = re.compile(r"\b(of no|whatever the|on every) machine\b")


def numbers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Names in a module that are numbers, with their docstrings."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef))
    yield from (each for body in bodies for each in _assigned(body))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from _defaults(function.args)


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, str]]:
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=True)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    yield from ((argument.arg.upper(), "") for argument, default in pairs if is_number(default))


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, after in zip(body, [*body[1:], None], strict=True):
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
            yield from ((name.id.upper(), said) for name in names if isinstance(name, ast.Name))


def is_number(value: ast.expr) -> bool:
    """Whether an expression is a number, or numbers, without any name; 0 says that there is none of something."""
    numeric = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context)
    constants = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    plain = all(isinstance(node, numeric) for node in ast.walk(value))
    return plain and any(c.value for c in constants) and all(type(c.value) in (int, float) for c in constants)


def figures(text: str, *, decides: bool = True) -> list[str]:
    """The names in a module that look like figures of a machine."""
    return [name for name, said in numbers(ast.parse(text)) if is_figure(name, " ".join(said.split()), decides)]


def unnamed(text: str) -> list[str]:
    """The larger numbers and the fractions of a module that no name is given to; those of slices are of no machine."""
    tree = ast.parse(text)
    apart = (ast.Assign, ast.AnnAssign, ast.Slice, ast.arguments)
    named = {id(inside) for node in ast.walk(tree) if isinstance(node, apart) for inside in _constants(node)}
    decorated = (each for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for each in node.decorator_list)
    named |= {id(inside) for decorator in decorated for inside in _constants(decorator)}
    return [ast.unparse(node) for node in _constants(tree) if id(node) not in named and is_large(node.value)]


def _constants(tree: ast.AST) -> Iterator[ast.Constant]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Constant))


def is_large(value: object) -> bool:
    """Whether a number is more than a count of a few things, or a part other than a half."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > FEW or value not in (value // 1, 0.5)


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
    assert figures('BLOCK = 32\n"""Bytes of the channels that lie together: one row of a fractal."""') == ["BLOCK"]
    assert figures('LEAST = 16\n"""Fewer would leave most lanes of a vector empty."""') == ["LEAST"]
    assert figures('WIDE = 4\n"""NR, in vectors, of a tile that reads few elements."""') == ["WIDE"]
    assert figures('MOST = 8\n"""Vectors that are written out, on every\nmachine: it bounds the code."""') == []
    assert figures('WASTE = 1.125\n"""Times its even share that the busiest thread may have."""') == []
    assert figures("def fits(size, l2=1 << 20):\n    l1_bytes = 32768\n    return size") == ["L1_BYTES", "L2"]
    assert figures("class Model:\n    latency: float = 4.0") == ["LATENCY"]
    assert unnamed("def fits(size):\n    return size <= 48 * 1024 and size * 0.75 < 3") == ["48", "1024", "0.75"]
    assert unnamed("@lru_cache(maxsize=256)\ndef name(text):\n    return text[:80]") == []
    assert figures("TILES = (2, 4)\nNAME = 'x'\nLINES = machine.line") == []


def test_none_stands_outside_files_of_machines() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for package in (*DECIDING, *WRITING)
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for name in figures(path.read_text(encoding="utf-8"), decides=package in DECIDING)
    ]
    assert not found


def test_numbers_that_decide_have_names() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {number}"
        for package in ("cost", "graph_kernel", "schedule")
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for number in unnamed(path.read_text(encoding="utf-8"))
    }
    assert not found
