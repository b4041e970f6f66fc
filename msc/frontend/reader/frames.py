"""A call of a user function while it is read: its variables, and where in the source it is."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msc.frontend.reader.guards import MISSING
from msc.frontend.reader.journal import UNBOUND, ClosureVariable, Item
from msc.frontend.reader.source import CodeSource
from msc.support.diagnostics import Location

if TYPE_CHECKING:
    from msc.frontend.reader.outcomes import Outcome
    from msc.frontend.reader.session import Session


class Frame:
    """One function, comprehension or class body. `node` is what is being read in it."""

    def __init__(
        self,
        session: Session,
        source: CodeSource,
        scope: dict[str, Any],
        cells: dict[str, CellType],
        locals_: dict[str, Any],
        function: Any = None,
    ) -> None:
        self.session = session
        self.source = source
        self.globals = scope
        self.cells = cells
        self.locals = session.journal.born(locals_)
        self.function = function
        self.node: ast.AST = source.node
        self.handled: list[BaseException] = []
        """The exceptions whose handlers are being read: what a bare `raise` raises again."""
        self.globals_declared: set[str] = set()
        self.depth = session.graph.depth
        """How many regions of the graph the call stands in."""
        self.is_class = isinstance(source.node, ast.ClassDef)
        for name in source.code.co_cellvars:
            cell = session.journal.born(CellType())
            if name in locals_:
                cell.cell_contents = locals_.pop(name)
            cells[name] = cell

    @property
    def code(self) -> CodeType:
        return self.source.code

    @property
    def name(self) -> str:
        return self.code.co_qualname.replace(".<locals>", "")

    # Where it is.

    def place(self) -> Location:
        """The place of the node that is being read."""
        line = getattr(self.node, "lineno", self.code.co_firstlineno)
        return Location(self.source.file.name, line, self._column(line, getattr(self.node, "col_offset", 0)) + 1)

    def text(self) -> str | None:
        """The line of that place."""
        line = getattr(self.node, "lineno", self.code.co_firstlineno)
        lines = self.source.file.lines
        return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else None

    def length(self) -> int:
        """How many characters of the line the node takes."""
        start, end = getattr(self.node, "col_offset", 0), getattr(self.node, "end_col_offset", None)
        if end is None or getattr(self.node, "end_lineno", 0) != getattr(self.node, "lineno", 0):
            return max(len((self.text() or "").rstrip()) - start, 1)
        return max(end - start, 1)

    def _column(self, line: int, offset: int) -> int:
        lines = self.source.file.lines
        return len(lines[line - 1].encode()[:offset].decode(errors="ignore")) if 0 < line <= len(lines) else offset

    # Variables.

    def mangled(self, name: str) -> str:
        """The name that Python gives to `__name` in a class."""
        owner = self.source.owner or (self.source.node.name if isinstance(self.source.node, ast.ClassDef) else None)
        if owner is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{owner.lstrip('_')}{name}"

    def load(self, name: str) -> Any:
        """The value of a variable. Raises NameError and UnboundLocalError as Python does."""
        name = self.mangled(name)
        if name in self.locals:
            return self.locals[name]
        if name in self.cells:
            return self._cell(name)
        if not self.is_class and name not in self.globals_declared and self._is_local(name):
            raise UnboundLocalError(
                f"cannot access local variable '{name}' where it is not associated with a value", name=name
            )
        return self._global(name)

    def _is_local(self, name: str) -> bool:
        return name in self.code.co_varnames

    def _cell(self, name: str) -> Any:
        cell = self.cells[name]
        try:
            value = cell.cell_contents
        except ValueError:
            if not self.session.journal.is_own(cell):
                self.session.guards.variable_of_outer(cell, name, MISSING)
            raise NameError(
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
                name=name,
            ) from None
        session = self.session
        if not session.journal.is_own(cell) and not session.is_written(ClosureVariable(cell, name)):
            session.guards.variable_of_outer(cell, name, value)
            session.note_outside(value)
        return value

    def _global(self, name: str) -> Any:
        session = self.session
        if name in self.globals:
            value = self.globals[name]
            if not session.is_written(Item(self.globals, name)):
                session.guards.variable(self.globals, name, value)
            session.note_outside(value)
            return value
        namespace = self.globals.get("__builtins__", builtins)
        namespace = namespace if isinstance(namespace, dict) else vars(namespace)
        session.guards.builtin(self.globals, namespace, name)
        if name in namespace:
            return namespace[name]
        raise NameError(f"name '{name}' is not defined", name=name)

    def store(self, name: str, value: Any) -> None:
        name = self.mangled(name)
        journal = self.session.journal
        if name in self.cells:
            journal.note(ClosureVariable(self.cells[name], name))
            self.cells[name].cell_contents = value
            return
        scope = self.globals if name in self.globals_declared else self.locals
        journal.note(Item(scope, name))
        scope[name] = value

    def delete(self, name: str) -> None:
        self.load(name)
        name = self.mangled(name)
        journal = self.session.journal
        if name in self.cells:
            slot = ClosureVariable(self.cells[name], name)
        else:
            slot = Item(self.globals if name in self.globals_declared else self.locals, name)
        journal.note(slot)
        slot.set(UNBOUND)

    # Reading.

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression."""
        outer, self.node = self.node, node
        value = EXPRESSIONS[type(node)](self, node)
        self.node = outer
        return value

    def execute(self, node: ast.stmt) -> Outcome | None:
        """Execute a statement; None if the next one follows."""
        self.node = node
        return STATEMENTS[type(node)](self, node)


Reader: TypeAlias = Callable[[Frame, Any], Any]
ReaderT = TypeVar("ReaderT", bound=Reader)

EXPRESSIONS: dict[type[ast.AST], Reader] = {}
STATEMENTS: dict[type[ast.AST], Reader] = {}


def reads(*kinds: type[ast.AST]) -> Callable[[ReaderT], ReaderT]:
    """Register what reads nodes of these kinds."""

    def register(reader: ReaderT) -> ReaderT:
        for kind in kinds:
            (EXPRESSIONS if issubclass(kind, ast.expr) else STATEMENTS)[kind] = reader
        return reader

    return register
