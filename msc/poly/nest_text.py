"""Loop nests as JSON, for other processes. What is read is equal to what was written, to the form of its indices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from msc.poly.nest import Body, Instance, Loop, Nest

_Json: TypeAlias = "int | str | list[_Json]"

_KINDS = {kind.name: kind for kind in AffineBinaryOpKind}


def to_text(nests: Sequence[Nest]) -> str:
    """The nests as one line."""
    return json.dumps([_nest(each) for each in nests])


def from_text(text: str) -> tuple[Nest, ...]:
    """The nests of a text by `to_text`."""
    return _read_nests(json.loads(text))


def _nest(nest: Nest) -> _Json:
    match nest:
        case Loop():
            bounds = [_affine(nest.lower), _affine(nest.upper), nest.step, nest.least]
            return ["loop", nest.name, nest.kind, *bounds, [_nest(each) for each in nest.body]]
        case Body():
            return ["body", nest.block, [_nest(each) for each in nest.inside]]
        case Instance():
            return ["run", nest.statement, [_affine(each) for each in nest.index]]


def _affine(expr: AffineExpr) -> _Json:
    match expr:
        case AffineConstantExpr():
            return expr.value
        case AffineDimExpr():
            return ["d", expr.position]
        case AffineBinaryOpExpr():
            return [expr.kind.name, _affine(expr.lhs), _affine(expr.rhs)]
        case _:
            raise ValueError(f"{expr} is no index of a nest")


def _read_nests(found: Sequence[_Json]) -> tuple[Nest, ...]:
    return tuple(_read_nest(cast("list[_Json]", each)) for each in found)


def _read_nest(found: list[_Json]) -> Nest:
    match found:
        case ["loop", str(name), str(kind), lower, upper, int(step), int(least), list(inside)]:
            return Loop(name, kind, _read_affine(lower), _read_affine(upper), step, _read_nests(inside), least)
        case ["body", int(block), list(inside)]:
            return Body(block, _read_nests(inside))
        case ["run", int(statement), list(index)]:
            return Instance(statement, tuple(map(_read_affine, index)))
        case _:
            raise ValueError(f"{found} is no nest")


def _read_affine(found: _Json) -> AffineExpr:
    match found:
        case int(value):
            return AffineConstantExpr(value)
        case ["d", int(position)]:
            return AffineDimExpr(position)
        case [str(kind), left, right]:
            return AffineBinaryOpExpr(_KINDS[kind], _read_affine(left), _read_affine(right))
        case _:
            raise ValueError(f"{found} is no index")
