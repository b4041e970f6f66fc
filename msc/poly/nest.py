"""The loop nest that isl generates for a schedule tree, as plain data.

Index expressions are affine over the sizes of the call, counts of tiles and the enclosing loops' variables: dimensions
in this order; loops that are not degenerate count, from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import islpy as isl
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.poly.model import KernelModel
from msc.poly.remembered import remembered
from msc.poly.schedule_tree.moves import without_places
from msc.poly.schedule_tree.nodes import Tree, with_clauses
from msc.poly.schedule_tree.to_isl import PLACES_MARK, IslTree, Loops, to_isl

_FOR: int = getattr(isl.ast_node_type, "for_")  # noqa: B009 - islpy's stub leaves this one out
_QUOTIENTS: frozenset[object] = frozenset(
    (isl.ast_expr_op_type.fdiv_q, isl.ast_expr_op_type.pdiv_q, isl.ast_expr_op_type.div)
)


@dataclass(frozen=True)
class Loop:
    """`for (x = lower; x < upper; x += step)`; `kind` is sequential, parallel, vector or unroll.

    A parallel loop is shared where it has `least` iterations or more.
    """

    name: str
    kind: str
    lower: AffineExpr
    upper: AffineExpr
    step: int
    body: tuple[Nest, ...]
    least: int = 0


@dataclass(frozen=True)
class Body:
    """What runs in block `block` of the tree (`all_blocks`), which says where arrays live or what is prefetched."""

    block: int
    inside: tuple[Nest, ...]


@dataclass(frozen=True)
class Instance:
    """A statement, executed at the point that `index` gives."""

    statement: int
    index: tuple[AffineExpr, ...]


Nest: TypeAlias = Loop | Body | Instance


class UnsupportedNest(Exception):
    """isl generated a construct that msc's schedules should never ask for (a guard, a non-unit condition)."""


def generate(tree: IslTree) -> tuple[Nest, ...]:
    """Isl's AST of a tree as a nest. The sizes of the call and the counts of tiles are the outermost dimensions."""
    return _with_bodies(_generated(tree.made), tree.blocks)


def nests_of(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """`generate`, which does not ask isl for a tree whose nests another process made (`note_nests`)."""
    known = _noted(model).get(without_places(tree))
    if known is None:
        return generate(to_isl(model, tree))
    return _with_bodies(known, with_clauses(tree))


def nests_at_all_blocks(model: KernelModel, tree: Tree) -> tuple[Nest, ...]:
    """The nests of a tree with a Body for every block: the same whatever clauses the tree has."""
    return _generated(to_isl(model, tree).made)


def note_nests(model: KernelModel, tree: Tree, nests: tuple[Nest, ...]) -> None:
    """Take nests that `nests_at_all_blocks` gave in another process for those of this tree."""
    _noted(model)[without_places(tree)] = nests


@remembered
def _noted(model: KernelModel) -> dict[Tree, tuple[Nest, ...]]:
    """Nests by the trees without places."""
    return {}


@remembered
def _generated(made: Loops) -> tuple[Nest, ...]:
    """The nest with a Body for every block."""
    build = isl.AstBuild.from_context(made.schedule.get_domain().params())
    variables = {name: AffineExpr.dimension(k) for k, name in enumerate(made.parameters)}
    return _nests(build.node_from_schedule(made.schedule), variables, len(made.parameters), None)


def _with_bodies(nests: Sequence[Nest], blocks: frozenset[int]) -> tuple[Nest, ...]:
    """The nest with a Body only for some blocks."""
    found: list[Nest] = []
    for nest in nests:
        match nest:
            case Loop():
                found.append(replace(nest, body=_with_bodies(nest.body, blocks)))
            case Body():
                inside = _with_bodies(nest.inside, blocks)
                found += [Body(nest.block, inside)] if nest.block in blocks else inside
            case Instance():
                found.append(nest)
    return tuple(found)


def _nests(node: isl.AstNode, variables: dict[str, AffineExpr], depth: int, mark: str | None) -> tuple[Nest, ...]:
    kind = node.get_type()
    if kind == isl.ast_node_type.block:
        children = node.block_get_children()
        return tuple(
            nest
            for i in range(children.n_ast_node())
            for nest in _nests(children.get_ast_node(i), variables, depth, mark)
        )
    if kind == isl.ast_node_type.mark:
        name = node.mark_get_id().get_name()
        inner = node.mark_get_node()
        if name.startswith(PLACES_MARK):
            return (Body(int(name.partition(":")[2]), _nests(inner, variables, depth, None)),)
        return _nests(inner, variables, depth, name)
    if kind == _FOR:
        return _loop(node, variables, depth, mark or "sequential:i")
    if kind == isl.ast_node_type.user:
        return (_instance(node.user_get_expr(), variables),)
    raise UnsupportedNest(f"isl generated {node.to_C_str()}")


def _loop(node: isl.AstNode, variables: dict[str, AffineExpr], depth: int, mark: str) -> tuple[Nest, ...]:
    kind, _, name = mark.partition(":")
    iterator = node.for_get_iterator().id_get_id().get_name()
    lower = _affine(node.for_get_init(), variables)
    if node.for_is_degenerate():
        return _nests(node.for_get_body(), {**variables, iterator: lower}, depth, None)
    upper = _upper(node.for_get_cond(), variables)
    step = _affine(node.for_get_inc(), variables)
    if not isinstance(step, AffineConstantExpr):
        raise UnsupportedNest(f"isl generated a loop of step {step}")
    inner = {**variables, iterator: AffineExpr.dimension(depth)}
    body = _nests(node.for_get_body(), inner, depth + 1, None)
    kind, _, least = kind.partition(" ")
    return (Loop(name, kind, lower, upper, step.value, body, int(least or 0)),)


def _upper(condition: isl.AstExpr, variables: dict[str, AffineExpr]) -> AffineExpr:
    operation = condition.op_get_type()
    bound = _affine(condition.op_get_arg(1), variables)
    if operation == isl.ast_expr_op_type.le:
        return bound + 1
    if operation == isl.ast_expr_op_type.lt:
        return bound
    raise UnsupportedNest(f"isl generated the loop condition {condition.to_C_str()}")


def _instance(call: isl.AstExpr, variables: dict[str, AffineExpr]) -> Instance:
    arguments = [call.op_get_arg(i) for i in range(call.op_get_n_arg())]
    statement = int(arguments[0].id_get_id().get_name().removeprefix("S"))
    return Instance(statement, tuple(_affine(a, variables) for a in arguments[1:]))


def _affine(expr: isl.AstExpr, variables: dict[str, AffineExpr]) -> AffineExpr:
    kind = expr.get_type()
    if kind == isl.ast_expr_type.int:
        return AffineExpr.constant(expr.int_get_val().to_python())
    if kind == isl.ast_expr_type.id:
        return variables[expr.id_get_id().get_name()]
    arguments = [_affine(expr.op_get_arg(i), variables) for i in range(expr.op_get_n_arg())]
    return _operation(expr, arguments)


def _operation(expr: isl.AstExpr, arguments: Sequence[AffineExpr]) -> AffineExpr:
    operation = expr.op_get_type()
    types = isl.ast_expr_op_type
    if operation == types.minus:
        return arguments[0] * -1
    left, right = arguments
    if operation == types.add:
        return left + right
    if operation == types.sub:
        return left + right * -1
    if operation == types.mul:
        return right * left.value if isinstance(left, AffineConstantExpr) else left * right
    if operation in _QUOTIENTS:
        return left // right
    if operation == types.pdiv_r:
        return left % right
    raise UnsupportedNest(f"isl generated the expression {expr.to_C_str()}")
