"""Loads and stores: `x[n][h * 2 + kh][w]`, and vectors through `load_f32x16(&x[n][h][w])`.

Buffers are dense, so lanes that step along any dimensions lie at one constant distance in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msc.codegen.c.affine import IndexExpression
from msc.codegen.c.arithmetic import resize_mask, vector_text
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.types import CArrayType, CType, memory_name
from msc.codegen.c.values import CExpression, Precedence


def element(name: str, indices: Sequence[IndexExpression], strides: Sequence[str] = ()) -> str:
    """The element as an lvalue; a rank-0 parameter is an array of one, and the name says so: `x[0]`.

    Where calls decide strides the place is their sum: `x[i * s + k]`.
    """
    if strides:
        moved = [(i, stride) for i, stride in zip(indices, strides, strict=True) if i.constant != 0]
        terms = [
            i.value.at(Precedence.SUM) if stride == "1" else f"{i.value.at(Precedence.PRODUCT)} * {stride}"
            for i, stride in moved
        ]
        return f"{name}[{' + '.join(terms) or '0'}]"
    return name + "".join(f"[{index.value.text}]" for index in indices)


def lane_distance(buffer: CArrayType, lanes: Sequence[int]) -> int | str:
    """Elements between two lanes; an expression where calls decide that."""
    if any(step and not stride.isdecimal() for step, stride in zip(lanes, buffer.open_strides, strict=False)):
        moved = [(step, stride) for step, stride in zip(lanes, buffer.open_strides, strict=True) if step]
        return " + ".join(stride if step == 1 else f"{step} * {stride}" for step, stride in moved)
    return sum(step * stride for step, stride in zip(lanes, buffer.strides, strict=True))


def load_scalar(text: str, base: str) -> CExpression:
    """An element; any byte that is not 0 is true."""
    if base == "i1":
        return CExpression(f"{text} != 0", CType("i1"), Precedence.EQUALITY, reads=True)
    return CExpression(text, CType(base), reads=True)


def load_vector(prelude: Prelude, text: str, type_: CType, distance: int | str, part: int) -> CExpression:
    """Lanes `distance` elements apart from the element on; equal lanes stay scalar. After the first `part`: zeros."""
    if distance == 0:
        return replace(load_scalar(text, type_.base), type=type_, splat=True)
    stored = stored_type(type_)
    return as_loaded(prelude, CExpression(vector_load(prelude, text, stored, distance, part), type_, reads=True))


def as_loaded(prelude: Prelude, value: CExpression) -> CExpression:
    """The value of a vector whose text is as it lies in memory."""
    return _as_mask(prelude, value) if value.type.base == "i1" else value


def vector_load(prelude: Prelude, text: str, stored: CType, distance: int | str, part: int, cast: str = "") -> str:
    """The expression of a vector as it lies in memory, of lanes that are not all one element.

    `cast` is of the address of side-by-side lanes that memory has as elements of another type.
    """
    prelude.type_name(stored)
    if part < stored.lanes and distance != 1:
        return f"{prelude.function('load_part_strided', stored)}(&{text}, {distance}, {part})"
    if part < stored.lanes:
        return f"{prelude.function('load_part', stored)}(&{text}, {part})"
    if distance == 1:
        return f"{prelude.function('load', stored)}({cast}&{text})"
    if distance == 2:
        return f"{prelude.function('load_even', stored)}(&{text})"
    return f"{prelude.function('load_strided', stored)}(&{text}, {distance})"


def _as_mask(prelude: Prelude, value: CExpression) -> CExpression:
    mask = CType("i8", value.type.lanes, True)
    prelude.type_name(mask)
    return replace(value, text=f"{value.text} != 0", type=mask, precedence=Precedence.EQUALITY)


def stored_type(type_: CType) -> CType:
    """The vector type as it lies in memory."""
    return CType({"i1": "u8", "f16": "u16", "bf16": "u16"}.get(type_.base, type_.base), type_.lanes)


def store_scalar(text: str, value: CExpression) -> str:
    """The statement that stores an element; `x += e` where that is the same sum."""
    start = f"{text} + "
    if value.precedence is Precedence.SUM and value.text.startswith(start) and _is_term(value.text[len(start) :]):
        return f"{text} += {value.text[len(start) :]};"
    return f"{text} = {value.text};"


def _is_term(text: str) -> bool:
    """Whether the text has no sum outside of brackets: `x + a + b` is not `x += a + b`."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 and text[position : position + 3] in (" + ", " - "):
            return False
    return depth == 0


def store_vector(prelude: Prelude, text: str, base: str, value: CExpression, distance: int | str, part: int) -> str:
    """The statement that stores the first `part` lanes `distance` elements apart."""
    lanes = value.type.lanes
    value = to_memory(prelude, value, base)
    stored = stored_type(CType(base, lanes))
    prelude.type_name(stored)
    if part < lanes and distance != 1:
        return f"{prelude.function('store_part_strided', stored)}(&{text}, {distance}, {part}, {value.text});"
    if part < lanes:
        return f"{prelude.function('store_part', stored)}(&{text}, {part}, {value.text});"
    if distance == 1:
        return f"{prelude.function('store', stored)}(&{text}, {value.text});"
    return f"{prelude.function('store_strided', stored)}(&{text}, {distance}, {value.text});"


def to_memory(prelude: Prelude, value: CExpression, base: str) -> CExpression:
    """A vector as it lies in memory."""
    if base != "i1":
        return vector_text(prelude, value)
    if value.splat:
        return vector_text(prelude, replace(value, type=CType("u8", value.type.lanes)))
    mask = resize_mask(prelude, value, 8)
    bytes_ = CType("u8", mask.type.lanes)
    return CExpression(f"({prelude.type_name(bytes_)})({mask.at(Precedence.UNARY)} & 1)", bytes_)


def declare_array(name: str, buffer: CArrayType) -> str:
    """A local buffer, aligned as the widest vector, without dimensions of one element; of one element, a variable."""
    if buffer.elements == 1:
        return f"{memory_name(buffer.base)} {name};"
    shape = tuple(size for size in buffer.shape if size != 1)
    return f"_Alignas(64) {memory_name(buffer.base)} {CArrayType(buffer.base, shape).declarator(name)};"
