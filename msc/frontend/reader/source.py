"""From a code object to the syntax tree that it was compiled from, and back; files are parsed once.

The tree is that of the code which runs, not of what the file has come to hold since: it compiles to the same bytecode.
"""

from __future__ import annotations
import __future__

import ast
import copy
import linecache
import sys
from collections.abc import Iterator
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
    codes: dict[tuple[int, str], list[CodeType]] = field(default_factory=dict[tuple[int, str], list[CodeType]])
    """What the file compiles to, by the line at which code begins and its name."""

    @classmethod
    def parse(cls, name: str, lines: list[str], flags: int) -> SourceFile | None:
        try:
            tree = ast.parse("".join(lines))
            forms = list(_compiled_forms(tree, "".join(lines), name, flags))
        except (SyntaxError, ValueError, RecursionError):
            return None
        file = cls(name, lines)
        for code in forms:
            file._index_code(code)
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

    def _index_code(self, code: CodeType) -> None:
        self.codes.setdefault((code.co_firstlineno, code.co_name), []).append(code)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                self._index_code(inner)

    def has(self, code: CodeType) -> bool:
        """Whether the file compiles to this bytecode."""
        return code in self.codes.get((code.co_firstlineno, code.co_name), ())

    def node_of(self, code: CodeType) -> Scope | None:
        """The node that `code` was compiled from; of several on a line, the one that its instructions lie in."""
        candidates = self.scopes.get((code.co_firstlineno, code.co_name), [])
        fitting = [node for node in candidates if _same_parameters(node, code)]
        if len(fitting) > 1:
            spots = {(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None and p[3]}
            fitting = [node for node in fitting if all(_holds(node, *spot) for spot in spots)]
            fitting.sort(key=_extent)
        return fitting[0] if fitting else None


def _compiled_forms(tree: ast.Module, text: str, name: str, flags: int) -> Iterator[CodeType]:
    """The code that a file becomes when it is imported; pytest rewrites the asserts of test files before."""
    yield compile(tree, name, "exec", flags, dont_inherit=True)
    pytest = sys.modules.get("_pytest.assertion.rewrite")
    if pytest is not None:
        rewritten = copy.deepcopy(tree)
        pytest.rewrite_asserts(rewritten, text.encode(), name)
        yield compile(rewritten, name, "exec", flags, dont_inherit=True)


def source_of(code: CodeType) -> CodeSource | None:
    """The source of a code object; None where there is no file, or it does not have the function any more."""
    key = (code, code.co_filename)
    if key not in _SOURCES:
        _SOURCES[key] = _found(code)
    return _SOURCES[key]


def _found(code: CodeType) -> CodeSource | None:
    """The source in the text of the file that is known, which may be older than the file; or in the file as it is."""
    flags = code.co_flags & __future__.annotations.compiler_flag  # of the program that compiled a text, as notebooks do
    file = _file(code.co_filename, flags)
    if file is None or not file.has(code):
        linecache.checkcache(code.co_filename)
        file = _file(code.co_filename, flags)
    node = file.node_of(code) if file is not None and file.has(code) else None
    return None if file is None or node is None else CodeSource(node, code, file)


_SOURCES: dict[tuple[CodeType, str], CodeSource | None] = {}
"""By the file as well: code objects of two files are equal if their texts are."""
_FILES: dict[tuple[str, int], tuple[int, SourceFile | None]] = {}


def _file(name: str, flags: int) -> SourceFile | None:
    lines = linecache.getlines(name)
    if not lines:
        return None
    known = _FILES.get((name, flags))
    if known is None or known[0] != hash(tuple(lines)):
        known = _FILES[name, flags] = (hash(tuple(lines)), SourceFile.parse(name, lines, flags))
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
