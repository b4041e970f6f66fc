"""Statements as text that is read back: `for i < 4, k < 3: r0[i] = reduce_add(mul(x0.f32[i, k], f32(2.0)))`.

Operands are `x0`, `x1`, ..., results `r0`, ...; a read names its element type, a literal is a call of its type.
`index(e)` is an index as a number, `at(s)` in an index is one that is data; `cast(f16, s)` converts, and `bits(i32, s)`
keeps the bits. `reduce_add` starts from the neutral element, `update_add` from what is there. Indices are affine:
`2 * i + k`, `i // 2`. The grammar is Python's, whose parser reads it.
"""

from __future__ import annotations

import ast
import math
import re

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.poly.compute import Combine, Statement, affine_map
from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Index, Read, Scalar

COMBINERS: tuple[Combine, ...] = ("add", "mul", "max", "min", "and", "or")
_DTYPE = re.compile(r"(f16|bf16|f32|f64|i1|u?i(8|16|32|64))")
_RESULT = re.compile(r"r\d+")
_HEAD = re.compile(r"\s*(?:for\s+([^:]*):)?\s*(.*)", re.DOTALL)
_LOOP = re.compile(r"\s*([A-Za-z_]\w*)\s*<\s*(\d+)\s*")
_KEYWORDS = {"and": "and_", "or": "or_", "not": "not_"}
_WORDS = {word: name for name, word in _KEYWORDS.items()}


class BadStatement(ValueError):
    """A text that is no statement; the message says what is wrong in it."""


def print_statement(statement: Statement) -> str:
    """The text of a statement; dimensions are renamed where two have one name."""
    names = _distinct(statement.names)
    loops = ", ".join(f"{name} < {n}" for name, n in zip(names, statement.extents, strict=True))
    places = ", ".join(_affine(e, names) for e in statement.write.results) or "()"
    body = _scalar(statement.body, names)
    if statement.combine is not None:
        body = f"{'update' if statement.accumulate else 'reduce'}_{statement.combine}({body})"
    head = f"for {loops}: " if loops else ""
    return f"{head}r{statement.result}[{places}] = {body}"


def _distinct(names: tuple[str, ...]) -> list[str]:
    return [name if names.count(name) == 1 else f"{name}{k}" for k, name in enumerate(names)]


def _affine(expr: AffineExpr, names: list[str]) -> str:
    match expr:
        case AffineConstantExpr():
            return str(expr.value)
        case AffineDimExpr():
            return names[expr.position]
        case AffineBinaryOpExpr(kind, lhs, rhs):
            sign = {AffineBinaryOpKind.Add: "+", AffineBinaryOpKind.Mul: "*", AffineBinaryOpKind.FloorDiv: "//"}
            texts = [_affine(e, names) for e in (lhs, rhs)]
            if kind is not AffineBinaryOpKind.Add:
                texts = [f"({t})" if " " in t else t for t in texts]
            return f"{texts[0]} {sign.get(kind, '%')} {texts[1]}"
        case _:
            raise BadStatement(f"{expr} is not affine in the dimensions")


def _scalar(scalar: Scalar, names: list[str]) -> str:
    match scalar:
        case Constant():
            return f"{scalar.dtype}({_literal(scalar.value)})"
        case Index():
            return f"index({_affine(scalar.expr, names)})"
        case Read():
            indirect = dict(scalar.indirect)
            places = [
                f"at({_scalar(indirect[axis], names)})" if axis in indirect else _affine(expr, names)
                for axis, expr in enumerate(scalar.index.results)
            ]
            return f"x{scalar.operand}.{scalar.dtype}[{', '.join(places) or '()'}]"
        case Cast():
            return f"{'bits' if scalar.bits else 'cast'}({scalar.dtype}, {_scalar(scalar.arg, names)})"
        case Apply():
            return f"{_KEYWORDS.get(scalar.op, scalar.op)}({', '.join(_scalar(a, names) for a in scalar.args)})"


def _literal(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)


def parse_statement(text: str) -> Statement:
    """The statement of a text. Raises BadStatement."""
    found = _HEAD.fullmatch(text)
    assert found is not None
    loops = [_loop(part) for part in found[1].split(",")] if found[1] is not None else []
    names = [name for name, _ in loops]
    if len(set(names)) != len(names):
        raise BadStatement("two loops have one name")
    try:
        tree = ast.parse(found[2].strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BadStatement(f"`{found[2]}` is not `r0[...] = ...`") from None
    match tree.body:
        case [ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target), slice=places)], value=value)]:
            return _Reader(names).statement(target, places, value, tuple(n for _, n in loops))
        case _:
            raise BadStatement(f"`{found[2]}` is not `r0[...] = ...`")


def _loop(text: str) -> tuple[str, int]:
    found = _LOOP.fullmatch(text)
    if found is None:
        raise BadStatement(f"`{text.strip()}` is not a loop such as `i < 4`")
    return found[1], int(found[2])


class _Reader:
    """Reads expressions over dimensions that have names."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def statement(self, target: str, places: ast.expr, value: ast.expr, extents: tuple[int, ...]) -> Statement:
        if not _RESULT.fullmatch(target):
            raise BadStatement(f"`{target}` is not a result such as `r0`")
        write = affine_map(len(extents), [self._affine(e) for e in _items(places)])
        combine: Combine | None = None
        accumulate = False
        match value:
            case ast.Call(func=ast.Name(id=name), args=[body]) if name.partition("_")[0] in ("reduce", "update"):
                combine = next((c for c in COMBINERS if c == name.partition("_")[2]), None)
                if combine is None:
                    raise BadStatement(f"`{name}` is not one of {', '.join(f'reduce_{c}' for c in COMBINERS)}")
                accumulate, value = name.startswith("update"), body
            case _:
                pass
        names, scalar = tuple(self._names), self._scalar(value)
        return Statement(extents, names, write, scalar, combine, int(target[1:]), accumulate)

    def _affine(self, node: ast.expr) -> AffineExpr:
        match node:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return AffineExpr.constant(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._affine(operand) * -1
            case ast.Name(id=name) if name in self._names:
                return AffineExpr.dimension(self._names.index(name))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._affine(left) + self._affine(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self._affine(left) + self._affine(right) * -1
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                a, b = self._affine(left), self._affine(right)
                a, b = (b, a) if isinstance(a, AffineConstantExpr) else (a, b)
                if isinstance(b, AffineConstantExpr):
                    return a * b
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod() as kind, right=right):
                a, b = self._affine(left), self._affine(right)
                if isinstance(b, AffineConstantExpr) and b.value > 0:
                    return a // b.value if isinstance(kind, ast.FloorDiv) else a % b.value
            case _:
                pass
        raise BadStatement(f"`{ast.unparse(node)}` is no affine expression of the loops")

    def _scalar(self, node: ast.expr) -> Scalar:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if _DTYPE.fullmatch(name):
                return Constant(_number(argument, name), name)
            case ast.Call(func=ast.Name(id="index"), args=[argument], keywords=[]):
                return Index(self._affine(argument))
            case ast.Call(func=ast.Name(id="cast" | "bits" as kind), args=[ast.Name(id=dtype), argument], keywords=[]):
                return Cast(self._scalar(argument), _checked_dtype(dtype), kind == "bits")
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                name = _WORDS.get(name, name)
                if name not in OPERATORS or OPERATORS[name].arity != len(arguments):
                    raise BadStatement(f"`{name}` of {len(arguments)} arguments is no scalar operator")
                return Apply(name, tuple(map(self._scalar, arguments)))
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=operand), attr=dtype), slice=places):
                return self._read(operand, dtype, places)
            case _:
                raise BadStatement(f"`{ast.unparse(node)}` is no scalar expression")

    def _read(self, operand: str, dtype: str, places: ast.expr) -> Read:
        if not re.fullmatch(r"x\d+", operand):
            raise BadStatement(f"`{operand}` is not an operand such as `x0`")
        exprs: list[AffineExpr | int] = []
        indirect: list[tuple[int, Scalar]] = []
        for axis, place in enumerate(_items(places)):
            match place:
                case ast.Call(func=ast.Name(id="at"), args=[argument], keywords=[]):
                    indirect.append((axis, self._scalar(argument)))
                    exprs.append(0)
                case _:
                    exprs.append(self._affine(place))
        map_ = affine_map(len(self._names), exprs)
        return Read(int(operand[1:]), map_, _checked_dtype(dtype), tuple(indirect))


def _items(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, ast.Tuple) else [node]


def _checked_dtype(name: str) -> str:
    if not _DTYPE.fullmatch(name):
        raise BadStatement(f"`{name}` is no element type")
    return name


def _number(node: ast.expr, dtype: str) -> float | int | bool:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    match node:
        case ast.Name(id="inf" | "nan" as word) if dtype[0] in "fb":
            return sign * float(word)
        case ast.Constant(value=bool() as truth) if dtype == "i1":
            return truth
        case ast.Constant(value=float() | int() as value) if dtype[0] in "fb" and not isinstance(value, bool):
            return sign * float(value)
        case ast.Constant(value=int() as value) if not isinstance(value, bool) and dtype != "i1":
            return sign * value
        case _:
            raise BadStatement(f"`{ast.unparse(node)}` is no literal of element type {dtype}")
