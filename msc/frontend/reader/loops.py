"""Loops: run while Python knows how often they run, written as `scf.while` where a tensor decides."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from msc.frontend.dispatch import apply
from msc.frontend.reader.branches import as_refusal, branch, choose, having_left, settled, slot_name
from msc.frontend.reader.graph import GraphValue
from msc.frontend.reader.joining import Joining, tensors_of
from msc.frontend.reader.journal import UNBOUND, Change, Item, JournalScope, Slot, TensorContent
from msc.frontend.reader.liveness import is_live_after_loop
from msc.frontend.reader.numbers import RuntimeNumber, as_kind
from msc.frontend.reader.outcomes import BREAK, CONTINUE, MISSING, NORMAL, RETURN, Outcome
from msc.frontend.reader.signals import Refusal
from msc.frontend.reader.structures import Entries, Fields, Items, Leaf, SameObject, Template, fill
from msc.frontend.tensor import Tensor

if TYPE_CHECKING:
    from msc.frontend.reader.frames import Frame

MAXIMUM_PASSES = 6
"""How often a body is read until it is known what it carries."""

Body = Callable[[], "Outcome | None"]


@dataclass(frozen=True)
class PythonLoop:
    """A loop of a function: `test` says whether there is another iteration, `orelse` follows unless `break` ends it."""

    frame: Frame
    node: ast.stmt
    test: Callable[[], bool | Tensor]
    body: Body
    orelse: Body


def repeat(loop: PythonLoop) -> Outcome | None:
    """Run a loop; from where a tensor decides, write it."""
    frame, session = loop.frame, loop.frame.session
    state: Outcome | None = None
    while True:
        if state is None:
            again = _tentative(loop)
            if not isinstance(again, Tensor) and not again:
                return loop.orelse()
        if state is not None or isinstance(again, Tensor):  # pyright: ignore[reportPossiblyUnboundVariable]
            if session.may_capture(loop.node):
                try:
                    return _written(loop, state)
                except Refusal as refusal:
                    session.give_up(loop.node, refusal)
            if state is not None:
                state = _decided(frame, state)
                if state is not None:
                    return left(state)
                continue
            if not session.decide(loop.test()):
                return loop.orelse()
        state = following(loop.body())
        if state is not None and NORMAL not in state.codes:
            return left(state)


def _tentative(loop: PythonLoop) -> bool | Tensor:
    """The condition; if a tensor decides, evaluating it has left no trace, as it will be evaluated again."""
    session = loop.frame.session
    scope = session.journal.begin()
    again = loop.test()
    if isinstance(again, Tensor):
        session.journal.undo(scope)
    else:
        session.journal.keep(scope)
    return again


def _decided(frame: Frame, outcome: Outcome) -> Outcome | None:
    if isinstance(outcome.code, RuntimeNumber):
        outcome.code.known("the end of a loop")
    return settled(frame, outcome)


def following(outcome: Outcome | None) -> Outcome | None:
    """The outcome of an iteration for the loop: `continue` is as good as reaching the end of the body."""
    if outcome is None or CONTINUE not in outcome.codes:
        return outcome
    codes = (outcome.codes - {CONTINUE}) | {NORMAL}
    if codes == frozenset((NORMAL,)):
        return None
    return Outcome(_replaced(outcome.code, CONTINUE, NORMAL), codes, outcome.value)


def left(outcome: Outcome) -> Outcome | None:
    """The outcome of a loop that `outcome` of an iteration has ended."""
    if BREAK not in outcome.codes:
        return outcome
    codes = (outcome.codes - {BREAK}) | {NORMAL}
    return (
        None if codes == frozenset((NORMAL,)) else Outcome(_replaced(outcome.code, BREAK, NORMAL), codes, outcome.value)
    )


def _replaced(code: int | RuntimeNumber, old: int, new: int) -> int | RuntimeNumber:
    if not isinstance(code, RuntimeNumber):
        return new if code == old else code
    is_old = apply("equal", code.tensor, as_kind(old, int))
    return RuntimeNumber(int, apply("select", is_old, as_kind(new, int), code.tensor))


@dataclass
class CarriedState:
    """What a loop carries: the templates of slots, of where control is and of what is returned; their leaves."""

    joining: Joining
    slots: dict[tuple[object, ...], tuple[Slot, Template]]
    code: Template
    value: Template
    form: tuple[Any, ...] = field(default=())

    def fill(self, leaves: Sequence[Any]) -> Outcome | None:
        """Give the slots values with these leaves; the outcome that goes with them."""
        for slot, template in self.slots.values():
            slot.set(fill(template, leaves, self.joining.session.adopt))
        code = fill(self.code, leaves)
        if not isinstance(code, RuntimeNumber):
            return None
        return Outcome(code, frozenset((NORMAL, BREAK, RETURN)), fill(self.value, leaves, self.joining.session.adopt))


def _written(loop: PythonLoop, state: Outcome | None) -> Outcome | None:
    """The loop as an `scf.while`. Raises Refusal if what it carries does not keep its type, or cannot be carried."""
    plan: CarriedState | None = None
    for _ in range(MAXIMUM_PASSES):
        attempt = _Attempt(loop, state, plan)
        found = attempt.read()
        if plan is not None and found.form == plan.form:
            return attempt.insert(plan, found)
        attempt.erase()
        plan = found
    raise Refusal("MSC0843", "what this loop carries changes with every iteration")


class _Attempt:
    """Reads the condition and the body once, for values of the types that the last attempt found."""

    def __init__(self, loop: PythonLoop, state: Outcome | None, plan: CarriedState | None) -> None:
        self._loop = loop
        self._session = loop.frame.session
        self._state = state
        self._plan = plan
        types = [] if plan is None else plan.joining.types()
        self._before, self._after = Block(arg_types=types), Block(arg_types=types)
        self._codes: frozenset[int] = frozenset()
        self._is_endless = False
        """Whether nothing ends the loop but `break` and `return`."""

    def erase(self) -> None:
        for block in (self._before, self._after):
            block.erase(safe_erase=False)

    def read(self) -> CarriedState:
        session = self._session
        scope, depth = session.journal.begin(), len(session.frames)
        try:
            with session.graph.inside(self._before):
                self._read_test(scope)
            with session.graph.inside(self._after):
                self._enter(self._after)
                outcome = following(self._loop.body())
            return self._planned(scope, outcome)
        except BaseException as error:
            del session.frames[depth:]
            if scope in session.journal.scopes:
                session.journal.undo(scope)
            self.erase()
            raise as_refusal(session.located(error)) from error

    def _enter(self, block: Block) -> Outcome | None:
        """Give all that is carried the values of the block's arguments."""
        if self._plan is None:
            return self._state
        for slot, _ in self._plan.slots.values():
            self._session.journal.note(slot)
        return self._plan.fill(tensors_of(self._session, block.args))

    def _read_test(self, scope: JournalScope) -> None:
        state = self._enter(self._before)
        again = self._again(state)
        if self._plan is None:
            return
        forwarded = self._forwarded(scope, state)
        self._before.add_op(scf.ConditionOp(self._session.graph.scalar(self._session.ssa(again)), *forwarded))

    def _again(self, state: Outcome | None) -> Tensor:
        loop = self._loop
        goes_on = True if state is None else state.code == NORMAL

        def test() -> RuntimeNumber:
            decided = loop.test()
            self._is_endless = decided is True
            return _as_bool(decided)

        return choose(loop.frame, goes_on, test, lambda: _as_bool(False)).tensor

    def _forwarded(self, scope: JournalScope, state: Outcome | None) -> list[SSAValue]:
        """What is carried, as it is after the condition has been evaluated."""
        plan = self._plan
        assert plan is not None
        joining = Joining(self._session, lambda _: True)
        forms: list[Any] = []
        for key, (slot, _) in plan.slots.items():
            before = scope.changes[key].before
            joining.what = slot_name(slot)
            forms.append((key, form_of(joining.slot(slot, before, slot.get()))))
        code, value = self._joined_outcome(joining, state)
        if (*forms, form_of(code), form_of(value)) != plan.form:
            raise Refusal("MSC0843", "the condition of this loop changes what the loop carries")
        return [joining.ssa(1, i) for i in range(len(joining.pairs))]

    def _planned(self, scope: JournalScope, outcome: Outcome | None) -> CarriedState:
        """What this attempt has changed, beside what the last one had."""
        self._codes = frozenset((NORMAL,)) if outcome is None else outcome.codes
        changes = self._session.journal.finish(scope)
        start = scope.start
        joining = Joining(self._session, lambda item: self._session.journal.born_since(item, start), is_loop=True)
        self._loop.frame.node = self._loop.node
        slots: dict[tuple[object, ...], tuple[Slot, Template]] = {}
        forms: list[Any] = []
        for key, change in self._ordered(changes):
            template = self._template(joining, change)
            if template is not None:
                slots[key] = (change.slot, template)
                forms.append((key, form_of(template)))
        code, value = self._joined_outcome(joining, outcome)
        return CarriedState(joining, slots, code, value, (*forms, form_of(code), form_of(value)))

    def _ordered(self, changes: dict[tuple[object, ...], Change]) -> list[tuple[tuple[object, ...], Change]]:
        """Those of the last attempt first, so that equal plans have equal orders."""
        known = {} if self._plan is None else self._plan.slots
        first = [(k, changes[k]) for k in known if k in changes]
        return [*first, *((k, c) for k, c in changes.items() if k not in known)]

    def _template(self, joining: Joining, change: Change) -> Template | None:
        """The template of a slot that is carried; None for what is new in every iteration."""
        slot, frame = change.slot, self._loop.frame
        if isinstance(slot, TensorContent) and self._is_inside(change.before):
            return None
        is_local = isinstance(slot, Item) and slot.holder is frame.locals
        if is_local and change.before is UNBOUND and not self._is_live(slot):
            return None
        joining.what = f"{slot_name(slot)}, which the loop carries,"
        return joining.slot(slot, change.before, change.after)

    def _is_live(self, slot: Any) -> bool:
        return is_live_after_loop(self._loop.frame.source.node, self._loop.node, slot.name)

    def _is_inside(self, value: Any) -> bool:
        return isinstance(value, GraphValue) and any(value.is_in(b) for b in (self._before, self._after))

    def _joined_outcome(self, joining: Joining, outcome: Outcome | None) -> tuple[Template, Template]:
        joining.what = "what is returned"
        codes = [NORMAL if o is None else o.code for o in (self._state, outcome)]
        values = [MISSING if o is None else o.value for o in (self._state, outcome)]
        return joining.template(*codes), joining.template(*values)

    def insert(self, plan: CarriedState, found: CarriedState) -> Outcome | None:
        """Insert the loop, whose blocks are those of this attempt, and give the slots what it results in."""
        session, graph = self._session, self._session.graph
        leaves = range(len(found.joining.pairs))
        with graph.inside(self._after):
            self._after.add_op(scf.YieldOp(*[found.joining.ssa(1, i) for i in leaves]))
        starts = [found.joining.ssa(0, i) for i in leaves]
        results = tensors_of(session, graph.repeat(starts, self._before, self._after))
        for slot, _ in found.slots.values():
            session.journal.note(slot)
        state = found.fill(results)
        return self._finished(state)

    def _finished(self, state: Outcome | None) -> Outcome | None:
        """What follows the loop: `else` where the condition has ended it."""
        loop = self._loop
        codes = self._codes | (frozenset() if self._state is None else self._state.codes)
        if state is None:
            return loop.orelse()
        ended = Outcome(state.code, codes | {NORMAL}, state.value)
        if self._is_endless:
            return left(having_left(ended))
        goes_on = apply("equal", _code(ended), as_kind(NORMAL, int))
        return settled(loop.frame, self._otherwise(goes_on, ended))

    def _otherwise(self, goes_on: Tensor, ended: Outcome) -> Outcome | None:
        loop = self._loop
        if isinstance(loop.node, ast.For | ast.While) and loop.node.orelse:
            return branch(loop.frame, loop.node.orelse[0], goes_on, loop.orelse, lambda: left(ended))
        return left(ended)


def _code(outcome: Outcome) -> Tensor:
    assert isinstance(outcome.code, RuntimeNumber)
    return outcome.code.tensor


def _as_bool(value: bool | Tensor) -> RuntimeNumber:
    return RuntimeNumber(bool, value if isinstance(value, Tensor) else Tensor.of(np.array(value)))


def form_of(template: Template) -> Any:
    """What two templates have in common that differ only in constants: the places of their leaves."""
    match template:
        case Leaf():
            return template.index
        case SameObject():
            return None
        case Items() | Entries() | Fields():
            return tuple(form_of(item) for item in template.items)
