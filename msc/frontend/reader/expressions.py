"""Reading expressions: names, literals, operators, attributes, subscripts, f-strings."""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, cast

from msc.frontend.reader import unread
from msc.frontend.reader.branches import choose
from msc.frontend.reader.frames import Frame, reads
from msc.frontend.reader.numbers import RuntimeNumber, beside, kind_of, negated
from msc.frontend.reader.sequences import contains, loaded_item
from msc.frontend.tensor import Tensor


@reads(ast.Constant)
def _constant(frame: Frame, node: ast.Constant) -> Any:
    return node.value


@reads(ast.Name)
def _name(frame: Frame, node: ast.Name) -> Any:
    return frame.load(node.id)


@reads(ast.NamedExpr)
def _named(frame: Frame, node: ast.NamedExpr) -> Any:
    value = frame.evaluate(node.value)
    frame.store(node.target.id, value)
    return value


@reads(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Any:
    owner = frame.evaluate(node.value)
    return frame.session.attribute(frame, owner, frame.mangled(node.attr))


@reads(ast.Subscript)
def _subscript(frame: Frame, node: ast.Subscript) -> Any:
    return loaded_item(frame.session, frame.evaluate(node.value), frame.evaluate(node.slice))


@reads(ast.Slice)
def _slice_(frame: Frame, node: ast.Slice) -> slice:
    return slice(*(None if part is None else frame.evaluate(part) for part in (node.lower, node.upper, node.step)))


# Displays.


def items_of(frame: Frame, nodes: list[ast.expr]) -> list[Any]:
    """The values of expressions, with those of `*iterable` spread."""
    values: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            values.extend(frame.session.iterate(frame.evaluate(node.value)))
        else:
            values.append(frame.evaluate(node))
    return values


@reads(ast.Tuple)
def _tuple_(frame: Frame, node: ast.Tuple) -> tuple[Any, ...]:
    return tuple(items_of(frame, node.elts))


@reads(ast.List)
def _list_(frame: Frame, node: ast.List) -> list[Any]:
    return frame.session.journal.born(items_of(frame, node.elts))


@reads(ast.Set)
def _set_(frame: Frame, node: ast.Set) -> set[Any]:
    return frame.session.journal.born(set(map(frame.session.real, items_of(frame, node.elts))))


@reads(ast.Dict)
def _dict_(frame: Frame, node: ast.Dict) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            made.update(frame.evaluate(value))
        else:
            place = frame.session.real(frame.evaluate(key))
            made[place] = frame.evaluate(value)
    return frame.session.journal.born(made)


# Operators.

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def aligned(a: Any, b: Any) -> tuple[Any, Any]:
    """Operands of an operator: a runtime number beside a tensor becomes a tensor."""
    if isinstance(a, RuntimeNumber) and isinstance(b, Tensor):
        return beside(a, b), b
    if isinstance(b, RuntimeNumber) and isinstance(a, Tensor):
        return a, beside(b, a)
    return a, b


@reads(ast.BinOp)
def _binary(frame: Frame, node: ast.BinOp) -> Any:
    left = frame.evaluate(node.left)
    a, b = aligned(left, frame.evaluate(node.right))
    return frame.session.operate(BINARY[type(node.op)], a, b)


@reads(ast.UnaryOp)
def _unary(frame: Frame, node: ast.UnaryOp) -> Any:
    value = frame.evaluate(node.operand)
    match node.op:
        case ast.Not():
            return inverted(frame, value)
        case ast.USub():
            return frame.session.operate(operator.neg, value)
        case ast.UAdd():
            return frame.session.operate(operator.pos, value)
        case _:
            return frame.session.operate(operator.invert, value)


def inverted(frame: Frame, value: Any) -> Any:
    """`not value`, a Python bool."""
    decided = frame.session.truth(value)
    return RuntimeNumber(bool, negated(decided)) if isinstance(decided, Tensor) else not decided


@reads(ast.Compare)
def _compare(frame: Frame, node: ast.Compare) -> Any:
    return _compare_rest(frame, node, frame.evaluate(node.left), 0)


def _compare_rest(frame: Frame, node: ast.Compare, left: Any, index: int) -> Any:
    """`left op right and right op ...`: the right side is evaluated once, and only if control comes there."""
    right = frame.evaluate(node.comparators[index])
    result = compared(frame, node.ops[index], left, right)
    if index + 1 == len(node.ops):
        return result
    return choose(frame, result, lambda: _compare_rest(frame, node, right, index + 1), lambda: result)


def compared(frame: Frame, op: ast.cmpop, left: Any, right: Any) -> Any:
    """One comparison."""
    match op:
        case ast.Is() | ast.IsNot():
            if RuntimeNumber in (type(left), type(right)) and kind_of(left) is kind_of(right) is bool:
                return compared(frame, ast.Eq() if isinstance(op, ast.Is) else ast.NotEq(), left, right)
            return (left is right) is isinstance(op, ast.Is)
        case ast.In():
            return contains(frame.session, right, left)
        case ast.NotIn():
            return inverted(frame, contains(frame.session, right, left))
        case _:
            return frame.session.operate(COMPARISONS[type(op)], *aligned(left, right))


@reads(ast.BoolOp)
def _boolean(frame: Frame, node: ast.BoolOp) -> Any:
    return _boolean_rest(frame, node, 0)


def _boolean_rest(frame: Frame, node: ast.BoolOp, index: int) -> Any:
    value = frame.evaluate(node.values[index])
    if index + 1 == len(node.values):
        return value

    def rest() -> Any:
        return _boolean_rest(frame, node, index + 1)

    if isinstance(node.op, ast.And):
        return choose(frame, value, rest, lambda: value)
    return choose(frame, value, lambda: value, rest)


@reads(ast.IfExp)
def _conditional(frame: Frame, node: ast.IfExp) -> Any:
    condition = as_number(condition_of(frame, node.test))
    frame.node = node
    return choose(frame, condition, lambda: frame.evaluate(node.body), lambda: frame.evaluate(node.orelse))


# Text.


@reads(ast.JoinedStr)
def _joined(frame: Frame, node: ast.JoinedStr) -> str:
    return "".join(cast(str, frame.evaluate(part)) for part in node.values)


@reads(ast.FormattedValue)
def _formatted(frame: Frame, node: ast.FormattedValue) -> str:
    value = frame.evaluate(node.value)
    specification = "" if node.format_spec is None else cast(str, frame.evaluate(node.format_spec))
    conversions: dict[int, Callable[[Any], str]] = {ord("s"): str, ord("r"): repr, ord("a"): ascii}
    value = frame.session.real(value)
    frame.session.look_into(value)
    unread.note_looking(frame.session, (value,), "formatting")
    return format(conversions[node.conversion](value) if node.conversion in conversions else value, specification)


# Conditions.


def condition_of(frame: Frame, node: ast.expr) -> bool | Tensor:
    """Whether an expression counts as true: a bool, or a boolean tensor of rank 0 that the graph computes.

    Of `a and b` only whether it is true matters here, so that its operands need not have one type.
    """
    match node:
        case ast.BoolOp():
            return _condition_of_rest(frame, node, 0)
        case ast.UnaryOp(op=ast.Not()):
            return frame.session.truth(inverted(frame, as_number(condition_of(frame, node.operand))))
        case _:
            value = frame.evaluate(node)
            frame.node = node
            return frame.session.truth(value)


def _condition_of_rest(frame: Frame, node: ast.BoolOp, index: int) -> bool | Tensor:
    first = condition_of(frame, node.values[index])
    if index + 1 == len(node.values):
        return first

    def rest() -> Any:
        return as_number(_condition_of_rest(frame, node, index + 1))

    frame.node = node
    if isinstance(node.op, ast.And):
        return frame.session.truth(choose(frame, as_number(first), rest, lambda: False))
    return frame.session.truth(choose(frame, as_number(first), lambda: True, rest))


def as_number(condition: bool | Tensor) -> Any:
    """A condition as a Python bool, which the graph computes if it must."""
    return RuntimeNumber(bool, condition) if isinstance(condition, Tensor) else condition
