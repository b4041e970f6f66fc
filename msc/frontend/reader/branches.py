"""A choice that a tensor makes: both paths are read, each into a block of its own, and what they leave is joined."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.ir import Block

from msc.frontend.reader.graph import GraphValue
from msc.frontend.reader.joining import Joining, tensors_of
from msc.frontend.reader.journal import UNBOUND, Change, ClosureVariable, Item, Slot, TensorContent
from msc.frontend.reader.liveness import is_live, is_live_where
from msc.frontend.reader.numbers import RuntimeNumber
from msc.frontend.reader.outcomes import BREAK, MISSING, NORMAL, RETURN, Outcome, codes_of
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.structures import SameObject, Template, fill
from msc.frontend.tensor import Tensor
from msc.support.diagnostics import MscError
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.frontend.reader.frames import Frame

Path = Callable[[], "Outcome | None"]


def choose(frame: Frame, condition: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """The value of one of two expressions: of both, if a tensor decides."""
    decided = frame.session.truth(condition)
    if not isinstance(decided, Tensor):
        return then() if decided else orelse()
    paths = [lambda: Outcome.of(RETURN, then()), lambda: Outcome.of(RETURN, orelse())]
    outcome = branch(frame, frame.node, decided, *paths, is_expression=True)
    assert outcome is not None
    return outcome.value


def branch(
    frame: Frame, construct: ast.AST, condition: Tensor, then: Path, orelse: Path, *, is_expression: bool = False
) -> Outcome | None:
    """Where control goes after one of two paths, between which a boolean tensor of rank 0 decides.

    If the two cannot be joined, the graph ends here, and the one path goes on that its result selects.
    """
    session = frame.session
    if session.may_capture(construct):
        try:
            return _Branch(frame, construct, is_expression).written(condition, then, orelse)
        except Refusal as refusal:
            session.give_up(construct, refusal)
    return then() if session.decide(condition) else orelse()


def guarded(frame: Frame, construct: ast.AST, outcome: Outcome, rest: Path) -> Outcome | None:
    """Go on with `rest` if control has not left with `outcome`."""
    goes_on = outcome.code == NORMAL
    if not isinstance(goes_on, RuntimeNumber):
        return rest() if goes_on else outcome
    return settled(frame, branch(frame, construct, goes_on.tensor, rest, lambda: having_left(outcome)))


def having_left(outcome: Outcome) -> Outcome:
    """The outcome where control has left."""
    codes = outcome.codes - {NORMAL}
    return Outcome(next(iter(codes)) if len(codes) == 1 else outcome.code, codes, outcome.value)


def settled(frame: Frame, outcome: Outcome | None) -> Outcome | None:
    """An outcome that the graph has computed by now, as the one that it is."""
    if outcome is None or not isinstance(outcome.code, RuntimeNumber):
        return outcome
    if frame.session.is_symbolic(outcome.code.tensor):
        return outcome
    code = int(outcome.code)
    return None if code == NORMAL else Outcome.of(code, outcome.value if code == RETURN else MISSING)


@dataclass
class Side:
    """A path that has been read: its block, where control went, and what it changed, which has been undone."""

    block: Block
    outcome: Outcome | None
    changes: dict[tuple[object, ...], Change]


def read_path(frame: Frame, path: Path, block: Block) -> Side:
    """Read `path` into `block`. Raises Refusal, also for errors: a graph cannot raise, and only one path is taken."""
    session = frame.session
    scope, depth = session.journal.begin(), len(session.frames)
    try:
        with session.graph.inside(block):
            outcome = path()
    except BaseException as error:
        del session.frames[depth:]
        session.journal.undo(scope)
        block.erase(safe_erase=False)
        raise as_refusal(session.located(error)) from error
    return Side(block, outcome, session.journal.finish(scope))


def as_refusal(error: BaseException) -> BaseException:
    """An error of user code on a path that may not be taken."""
    if isinstance(error, Refusal) or not isinstance(error, Exception):
        return error
    if isinstance(error, MscError):
        first = error.diagnostics[0]
        refusal = Refusal(first.code, first.message, first.help)
        refusal.diagnostic = first
        return refusal
    what = f"{type(error).__name__} is raised on a path that a tensor decides on"
    return Refusal("MSC0844", what, "raise outside of the branch, or let this function run in PyNative mode")


class _Branch:
    def __init__(self, frame: Frame, construct: ast.AST, is_expression: bool) -> None:
        self._frame = frame
        self._session = frame.session
        self._construct = construct
        self._is_expression = is_expression
        start = self._session.journal.clock + 1
        self._joining = Joining(self._session, lambda item: self._session.journal.born_since(item, start))

    def written(self, condition: Tensor, then: Path, orelse: Path) -> Outcome | None:
        session = self._session
        asked = session.ssa(condition)
        first = read_path(self._frame, then, Block())
        try:
            second = read_path(self._frame, orelse, Block())
        except BaseException:
            first.block.erase(safe_erase=False)
            raise
        self._frame.node = self._construct
        try:
            slots = self._slots(first, second)
            code, value = self._outcome(first.outcome, second.outcome)
        except Refusal as refusal:
            for side in (first, second):
                side.block.erase(safe_erase=False)
            raise session.located(refusal) from None
        leaves = self._choose(asked, first.block, second.block)
        for slot, template in slots:
            session.journal.note(slot)
            slot.set(fill(template, leaves, session.adopt))
        codes = codes_of(first.outcome) | codes_of(second.outcome)
        return (
            None
            if codes == frozenset((NORMAL,))
            else Outcome(fill(code, leaves), codes, fill(value, leaves, session.adopt))
        )

    def _slots(self, first: Side, second: Side) -> list[tuple[Slot, Template]]:
        changed = {k: c.slot for side in (first, second) for k, c in side.changes.items()}
        found: list[tuple[Slot, Template]] = []
        for key, slot in changed.items():
            if isinstance(slot, TensorContent) and self._is_inside(slot, first, second):
                continue
            template = self._joined(slot, *((side, self._value(side, key, slot)) for side in (first, second)))
            if template is not None:
                found.append((slot, template))
        return found

    def _is_inside(self, slot: Slot, first: Side, second: Side) -> bool:
        """Whether a tensor came into being on one of the paths: what it was before is a value of that block."""
        value = slot.get()
        return isinstance(value, GraphValue) and any(value.is_in(side.block) for side in (first, second))

    def _value(self, side: Side, key: tuple[object, ...], slot: Slot) -> Any:
        if (
            (self._is_local(slot) or self._is_own_cell(slot))
            and side.outcome is not None
            and side.outcome.is_code(RETURN)
            and not self._is_expression
        ):
            return MISSING
        return side.changes[key].after if key in side.changes else slot.get()

    def _is_local(self, slot: Slot) -> bool:
        return isinstance(slot, Item) and slot.holder is self._frame.locals

    def _is_own_cell(self, slot: Slot) -> bool:
        """Whether a slot is a variable of this very call that functions inside share."""
        return (
            isinstance(slot, ClosureVariable)
            and slot.name in self._frame.code.co_cellvars
            and (self._frame.cells.get(slot.name) is slot.holder)
        )

    def _joined(self, slot: Slot, *found: tuple[Side, Any]) -> Template | None:
        """The template of a slot; None for a variable that nobody will read."""
        a, b = (value for _, value in found)
        if a is MISSING and b is MISSING:
            return None
        self._joining.what = slot_name(slot)
        pairs = len(self._joining.pairs)
        try:
            return self._joining.slot(slot, a, b)
        except Refusal:
            if not self._is_local(slot) or is_live(self._frame.source.node, self._construct, slot.name):  # pyright: ignore[reportAttributeAccessIssue]
                needed = [value if self._is_needed(slot, side) else MISSING for side, value in found]
                if all(value is not MISSING for value in needed):
                    raise
                del self._joining.pairs[pairs:]
                return self._joining.slot(slot, *needed)
            del self._joining.pairs[pairs:]
            return SameObject(UNBOUND)

    def _is_needed(self, slot: Slot, side: Side) -> bool:
        """Whether a variable may be read where control goes from a path; of those that leave, `break` is told apart."""
        codes = codes_of(side.outcome)
        if not self._is_local(slot) or self._is_expression or codes not in (frozenset((BREAK,)), frozenset((NORMAL,))):
            return True
        scope, left_loop = self._frame.source.node, BREAK in codes
        return is_live_where(scope, self._construct, slot.name, left_loop)  # pyright: ignore[reportAttributeAccessIssue]

    def _outcome(self, a: Outcome | None, b: Outcome | None) -> tuple[Template, Template]:
        self._joining.what = "the value" if self._is_expression else "what is returned"
        codes = [NORMAL if o is None else o.code for o in (a, b)]
        values = [MISSING if o is None else o.value for o in (a, b)]
        return self._joining.template(*codes), self._joining.template(*values)

    def _choose(self, condition: Any, then: Block, orelse: Block) -> list[Tensor]:
        graph, joining = self._session.graph, self._joining
        if not joining.pairs:
            then.erase(safe_erase=False)
            orelse.erase(safe_erase=False)
            return []
        if self._is_cheap(then, orelse):
            return self._select(condition, then, orelse)
        for side, block in enumerate((then, orelse)):
            with graph.inside(block):
                block.add_op(scf.YieldOp(*[joining.ssa(side, i) for i in range(len(joining.pairs))]))
        return tensors_of(self._session, graph.choose(condition, then, orelse, joining.types()))

    def _is_cheap(self, *blocks: Block) -> bool:
        """Whether computing both numbers costs less than to decide which one."""
        pairs = self._joining.pairs
        if any(value is not None and value.ndim for pair in pairs for value in pair):
            return False
        ops = [op for block in blocks for op in block.ops]
        return len(ops) <= _CHEAP and all(op.name in _SCALAR_OPERATIONS for op in ops)

    def _select(self, condition: Any, *blocks: Block) -> list[Tensor]:
        graph, joining = self._session.graph, self._joining
        sides = range(len(blocks))
        for block in blocks:
            for op in list(block.ops):
                op.detach()
                graph.insert(op)
        chosen = [[joining.ssa(side, i) for side in sides] for i in range(len(joining.pairs))]
        for block in blocks:
            block.erase(safe_erase=False)
        return [Tensor.of(graph.emit("select", [condition, *values], {})[0]) for values in chosen]


_CHEAP = 6
_SCALAR_OPERATIONS = frozenset(
    f"ms.{name}"
    for name in (
        *("add", "sub", "mul", "neg", "abs", "minimum", "maximum", "cast", "reshape", "select"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_not"),
    )
)
"""What is computed for nothing if it is not needed, and cannot fail."""


def slot_name(slot: Slot) -> str:
    """A slot in a message."""
    name = getattr(slot, "name", None)
    if isinstance(slot, Item) or (name is not None and hasattr(slot.holder, "cell_contents")):
        return f"the variable '{name}'"
    if name is not None:
        return f"the attribute '{name}'"
    if isinstance(slot, TensorContent):
        return "a tensor that is assigned to"
    return f"what {a(type(slot.holder).__name__)} holds"
