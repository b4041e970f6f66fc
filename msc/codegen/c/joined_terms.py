"""Terms of an instruction's factor that lie side by side in memory: read as the words that the instruction takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Operation, SSAValue

from msc.codegen.c import access
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CType, buffer_type
from msc.codegen.c.values import CExpression
from msc.dialects.loop import AddProductsOp, LoadOp, StoreOp
from msc.ir.typed import memref_type
from msc.poly.affine import linear_form

_WORD = 4
"""Bytes."""


def joined(op: AddProductsOp, terms: Sequence[SSAValue]) -> LoadOp | None:
    """The load of the first term of a factor, if the others lie right behind it, lane by lane; else None.

    Nothing stores there between the loads and the product, whose block has no store to that buffer.
    """
    loads = [term.owner for term in terms]
    if not all(type(load) is LoadOp and load.parent is op.parent for load in loads):
        return None
    first, *others = cast("list[LoadOp]", loads)
    if any(size < 0 for size in memref_type(first.buffer).get_shape()):
        return None
    type_ = buffer_type(first.buffer.type)
    distance = access.lane_distance(type_, first.lane_steps) if first.all_lanes > 1 else 0
    if distance not in (0, len(terms)) or first.touched_lanes < first.all_lanes:
        return None
    if not all(_is_behind(first, other, step) for step, other in enumerate(others, 1)):
        return None
    return None if _is_stored(first.buffer, op) else first


def _is_behind(first: LoadOp, other: LoadOp, step: int) -> bool:
    """Whether a load reads what lies `step` elements behind what the first one reads."""
    same = other.buffer is first.buffer and other.lane_steps == first.lane_steps
    if not same or tuple(other.indices) != tuple(first.indices):
        return False
    strides, apart = buffer_type(first.buffer.type).strides, 0
    for here, there, stride in zip(first.map.results, other.map.results, strides, strict=True):
        form = linear_form(there - here)
        if form is None or any(form.coefficients.values()):
            return False
        apart += form.constant * stride
    return apart == step


def _is_stored(buffer: SSAValue, op: Operation) -> bool:
    block = op.parent
    return block is not None and any(type(each) is StoreOp and each.target is buffer for each in block.ops)


def is_read_joined(load: LoadOp) -> bool:
    """Whether a value is read by products only, together with what lies beside it."""
    uses = list(load.result.uses)
    return bool(uses) and all(
        isinstance(use.operation, AddProductsOp)
        and all(joined(use.operation, side) for side in use.operation.terms if load.result in side)
        and use.operation.sum is not load.result
        for use in uses
    )


def _begins_with_word(load: LoadOp) -> bool:
    """Whether a load always reads the first byte of a word, of a buffer that begins with one."""
    type_, apart = buffer_type(load.buffer.type), list[int]()
    for index, stride in zip(load.map.results, type_.strides, strict=True):
        form = linear_form(index)
        if form is None:
            return False
        apart += [stride * each * type_.item_bytes for each in (form.constant, *form.coefficients.values())]
    return not any(each % _WORD for each in apart)


def words(prelude: Prelude, text: str, load: LoadOp, lanes: int, *, may_align: bool = False) -> CExpression:
    """The words from the place `text` on, where a load reads the first elements: one of each lane, or one for all.

    A buffer that `may_align` begins with a word: machines without other loads then need one load for each.
    """
    if load.all_lanes > 1 and any(load.lane_steps):
        type_ = CType("u32", load.all_lanes)
        return CExpression(
            access.vector_load(prelude, text, type_, 1, type_.lanes, "(const void *)"), type_, reads=True
        )
    word = CType("u32")
    size = buffer_type(load.buffer.type).item_bytes
    if not prelude.aligns_words:
        called = f"{prelude.function('word', word)}(&{text})"
    elif may_align and _begins_with_word(load):
        called = f"{prelude.function('aligned_word', word)}(&{text})"
    else:
        function, type_ = {1: ("quad", "int8_t"), 2: ("pair", "uint16_t")}[size]
        terms = ", ".join(f"({type_})(&{text})[{k}]" for k in range(_WORD // size))
        called = f"{prelude.function(function, word)}({terms})"
    return CExpression(called, CType("u32", lanes), splat=lanes > 0, reads=True)
