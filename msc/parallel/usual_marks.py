"""The layouts of a program that says nothing but its mesh: data parallel along the first axis, and tensor parallel.

Arguments with the first argument's number of examples are cut along the mesh's axis `dp`. Products by weights are cut
along the other axes: by columns, and by rows where what they multiply is cut already, so that a pair of them ends in
one sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from msc.dialects import ms
from msc.dialects.ms.attributes import MS_NAME, MS_SHARD, MS_SHARDING
from msc.ir.typed import is_tensor, shape
from msc.parallel.layouts import Layout
from msc.parallel.marks import mark_text
from msc.parallel.mesh import Mesh
from msc.parallel.rules import rule_of

_Cut = tuple[SSAValue, int]
"""A dimension of a value."""


def has_marks(function: FuncOp) -> bool:
    """Whether a function, or an operation in it, says how it lies on the mesh."""
    said = [*(function.arg_attrs or ()), *(function.res_attrs or ())]
    return any(MS_SHARDING in entry.data for entry in said) or any(MS_SHARD in op.attributes for op in function.walk())


def mark_as_usual(function: FuncOp, mesh: Mesh) -> None:
    """Give a function without marks those above."""
    if "dp" in mesh.names:
        _cut_examples(function, mesh, "dp")
    others = tuple(name for name in mesh.names if name not in ("dp", "pp"))
    if others:
        _cut_products(function, mesh, others)


def _cut_examples(function: FuncOp, mesh: Mesh, axis: str) -> None:
    arguments = [a for a in function.body.block.args if is_tensor(a.type) and shape(a)]
    if not arguments or shape(arguments[0])[0] % mesh.size_of(axis):
        return
    examples = shape(arguments[0])[0]
    attributes = list(function.arg_attrs or [DictionaryAttr({})] * len(function.body.block.args))
    for argument in arguments:
        if shape(argument)[0] == examples and not _is_weight(argument):
            cuts = ((axis,), *((),) * (len(shape(argument)) - 1))
            said = {MS_SHARDING: StringAttr(str(Layout(mesh, cuts)))}
            attributes[argument.index] = DictionaryAttr({**attributes[argument.index].data, **said})
    function.arg_attrs = ArrayAttr(attributes)


def _cut_products(function: FuncOp, mesh: Mesh, axes: tuple[str, ...]) -> None:
    """Follow the cut dimensions from product to product."""
    cut: set[_Cut] = set()
    parts = mesh.size_of(*axes)
    for op in function.body.block.ops:
        product = _product(op)
        if product is not None:
            x, inner, weight, rows, columns = product
            by_rows = (x, inner) in cut and shape(x)[inner] % parts == 0
            dimension = rows if by_rows else columns
            if shape(weight)[dimension] % parts == 0:
                marks: list[Layout | None] = [None] * len(op.operands)
                marks[op.operands.index(weight)] = _along(mesh, weight, dimension, axes)
                if by_rows:
                    marks[op.operands.index(x)] = _along(mesh, x, inner, axes)
                else:
                    result = op.results[0]
                    cut.add((result, 1 if isinstance(op, ms.Conv2dOp) else len(shape(result)) - 1))
                op.attributes[MS_SHARD] = mark_text(marks)
            continue
        cut |= set(_carried(op, cut))


def _product(op: Operation) -> tuple[SSAValue, int, SSAValue, int, int] | None:
    """Of a product by a weight: what it multiplies and along which dimension, the weight, its rows and its columns."""
    match op:
        case ms.MatmulOp() if _is_weight(op.b):
            rows = 1 if op.flag("transpose_b") else 0
            return op.a, 0 if op.flag("transpose_a") else 1, op.b, rows, 1 - rows
        case ms.DenseOp() if _is_weight(op.weight):
            return op.x, len(op.shape(0)) - 1, op.weight, 1, 0
        case ms.Conv2dOp() if _is_weight(op.operands[1]) and op.int_("group") == 1:
            return op.operands[0], 1, op.operands[1], 1, 0
        case _:
            return None


def _is_weight(value: SSAValue) -> bool:
    """A parameter, or an argument without a public name, maybe moved."""
    while isinstance(value, OpResult) and isinstance(value.op, ms.TransposeOp | ms.ReshapeOp | ms.CastOp):
        value = value.op.operands[0]
    if isinstance(value, OpResult):
        return isinstance(value.op, ms.GetParameterOp)
    function = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(function, FuncOp) or not isinstance(value, BlockArgument) or function.arg_attrs is None:
        return False
    return MS_NAME not in function.arg_attrs.data[value.index].data


def _along(mesh: Mesh, value: SSAValue, dimension: int, axes: tuple[str, ...]) -> Layout:
    return Layout(mesh, tuple(axes if d == dimension else () for d in range(len(shape(value)))))


def _carried(op: Operation, cut: set[_Cut]) -> Iterator[_Cut]:
    """The dimensions of results that go with cut dimensions of operands."""
    rule = rule_of(op)
    for operand, factors in zip(op.operands, rule.operands, strict=True):
        for d, factor in enumerate(factors):
            if factor is not None and (operand, d) in cut:
                for result, of_result in zip(op.results, rule.results, strict=True):
                    yield from ((result, k) for k, other in enumerate(of_result) if other == factor)
