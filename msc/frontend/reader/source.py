"""From a code object to the syntax tree that it was compiled from, and back; files are parsed once."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType
from typing import Any, TypeAlias

Scope: TypeAlias = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)
"""A node that has a code object of its own."""

_ANONYMOUS: dict[type[ast.AST], str] = {
    ast.Lambda: "<lambda>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}


@dataclass
class CodeSource:
    """The syntax tree of a code object. `children` are the code objects of the scopes directly inside it."""

    node: Scope
    code: CodeType
    file: SourceFile

    @cached_property
    def children(self) -> dict[ast.AST, CodeType]:
        codes = [constant for constant in self.code.co_consts if isinstance(constant, CodeType)]
        found = [(code, self.file.node_of(code)) for code in codes]
        return {node: code for code, node in found if node is not None}

    @cached_property
    def owner(self) -> str | None:
        """The class in whose body the scope stands, by which names that begin with two underscores are mangled."""
        return self.file.owners.get(self.node)


@dataclass
class SourceFile:
    """A parsed file and its scopes by the line at which their code begins."""

    name: str
    lines: list[str]
    scopes: dict[tuple[int, str], list[Scope]] = field(default_factory=dict[tuple[int, str], list[Scope]])
    owners: dict[ast.AST, str] = field(default_factory=dict[ast.AST, str])

    @classmethod
    def parse(cls, name: str, lines: list[str]) -> SourceFile | None:
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            return None
        file = cls(name, lines)
        file._index(tree, None)
        return file

    def _index(self, node: ast.AST, owner: str | None) -> None:
        if isinstance(node, Scope):
            self.scopes.setdefault((_first_line(node), _code_name(node)), []).append(node)
            if owner is not None:
                self.owners[node] = owner
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        for child in ast.iter_child_nodes(node):
            self._index(child, inside)

    def node_of(self, code: CodeType) -> Scope | None:
        """The node that `code` was compiled from; of several on a line, the one that its instructions lie in."""
        candidates = self.scopes.get((code.co_firstlineno, code.co_name), [])
        fitting = [node for node in candidates if _same_parameters(node, code)]
        if len(fitting) > 1:
            spots = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None and p[3]}
            fitting = [node for node in fitting if all(_holds(node, *spot) for spot in spots)]
            fitting.sort(key=_extent)
        return fitting[0] if fitting else None


def source_of(code: CodeType) -> CodeSource | None:
    """The source of a code object; None where there is no file, or it does not have the function any more."""
    if code in _SOURCES:
        return _SOURCES[code]
    file = _file(code.co_filename)
    node = None if file is None else file.node_of(code)
    source = None if file is None or node is None else CodeSource(node, code, file)
    _SOURCES[code] = source
    return source


_SOURCES: dict[CodeType, CodeSource | None] = {}
_FILES: dict[str, tuple[int, SourceFile | None]] = {}


def _file(name: str) -> SourceFile | None:
    lines = linecache.getlines(name)
    if not lines:
        return None
    known = _FILES.get(name)
    if known is None or known[0] != hash(tuple(lines)):
        known = _FILES[name] = (hash(tuple(lines)), SourceFile.parse(name, lines))
    return known[1]


def _first_line(node: Scope) -> int:
    decorators: list[Any] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _code_name(node: Scope) -> str:
    return _ANONYMOUS[type(node)] if type(node) in _ANONYMOUS else getattr(node, "name", "")


def _same_parameters(node: Scope, code: CodeType) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return True
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    given = code.co_varnames[: code.co_argcount]
    return len(names) == len(given) and all(g.endswith(n) for n, g in zip(names, given, strict=True))


def _holds(node: ast.expr | ast.stmt, line: int, column: int) -> bool:
    start, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    return start <= (line, column) <= end


def _extent(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return ((node.end_lineno or 0) - node.lineno, (node.end_col_offset or 0) - node.col_offset)
