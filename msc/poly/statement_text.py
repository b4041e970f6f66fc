"""Compute definitions in readable form: `y[n, oc, ow] += x[n, ic, ow + kw] * weight[oc, ic, kw]`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from xdsl.ir.affine import AffineExpr

from msc.poly.compute import Combine, Statement, identity
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar

_INFIX: Mapping[str, str] = {
    **{"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "and": "&", "or": "|", "xor": "^"},
    **{"shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
}
_UPDATES: Mapping[Combine, str] = {"add": "+=", "mul": "*=", "and": "&=", "or": "|="}
_DIMENSION = re.compile(r"\bd(\d+)\b")
_SIMPLE = re.compile(r"\((\w+) ([*]|floordiv|mod) (\d+)\)")


def statement_lines(statement: Statement, operands: Sequence[str], results: Sequence[str]) -> tuple[str, ...]:
    """The loops of a statement, its start where it reduces, and its body, on named operands and results."""
    loops = ", ".join(f"{name} < {extent}" for name, extent in zip(statement.names, statement.extents, strict=True))
    target = f"{results[statement.result]}{index_text(statement.write.results, statement.names)}"
    body = scalar_text(statement.body, operands, statement.names)
    head = (f"for {loops}:",) if loops else ()
    if statement.combine is None:
        return (*head, f"  {target} = {body}")
    start = () if statement.accumulate else (f"{target} = {_start(statement)}",)
    return (*start, *head, f"  {update_text(target, statement.combine, body)}")


def _start(statement: Statement) -> str:
    assert statement.combine is not None
    return _number(identity(statement.combine, statement.body.dtype))


def update_text(target: str, combine: Combine, body: str) -> str:
    """What writes a combination of what is there and a value."""
    if combine in _UPDATES:
        return f"{target} {_UPDATES[combine]} {body}"
    return f"{target} = {combine}({target}, {body})"


def scalar_text(scalar: Scalar, operands: Sequence[str], names: Sequence[str]) -> str:
    """A scalar body in infix form; conversions and other operators look like calls."""
    match scalar:
        case Constant():
            return _number(scalar.value)
        case Index():
            return _affine(scalar.expr, names)
        case Read():
            return _read(scalar, operands, names)
        case Cast():
            kind = f"bits_{scalar.dtype}" if scalar.bits else scalar.dtype
            return f"{kind}({scalar_text(scalar.arg, operands, names)})"
        case Apply(op, args):
            texts = [scalar_text(arg, operands, names) for arg in args]
            if op in _INFIX:
                return f" {_INFIX[op]} ".join(_grouped(arg, text) for arg, text in zip(args, texts, strict=True))
            return f"{op}({', '.join(texts)})"


def _grouped(scalar: Scalar, text: str) -> str:
    compound = isinstance(scalar, Index) or (isinstance(scalar, Apply) and scalar.op in _INFIX)
    return f"({text})" if compound and " " in text else text


def _read(read: Read, operands: Sequence[str], names: Sequence[str]) -> str:
    indirect = {axis: scalar_text(index, operands, names) for axis, index in read.indirect}
    places = [indirect.get(axis, _affine(expr, names)) for axis, expr in enumerate(read.index.results)]
    return operands[read.operand] + (f"[{', '.join(places)}]" if places else "")


def index_text(exprs: Sequence[AffineExpr], names: Sequence[str]) -> str:
    """The index of an element, in brackets; nothing for a scalar."""
    return f"[{', '.join(_affine(expr, names) for expr in exprs)}]" if exprs else ""


def _affine(expr: AffineExpr, names: Sequence[str]) -> str:
    text = _DIMENSION.sub(lambda found: names[int(found[1])], str(expr))
    text = _SIMPLE.sub(r"\1 \2 \3", text)
    return text[1:-1] if text.startswith("(") and text.endswith(")") and _is_one_group(text) else text


def _is_one_group(text: str) -> bool:
    """Whether the first parenthesis closes at the end."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _number(value: float) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
