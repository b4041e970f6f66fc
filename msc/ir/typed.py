"""Typed narrowing: xDSL gives operands as `SSAValue[Attribute]`; these give the type that a rule relies on.

Each raises DtypeConflict (MSC0202), an error of the program, when the value is of another kind.
"""

from __future__ import annotations

from typing import TypeGuard, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue

from msc.ir.errors import DtypeConflict, ShapeConflict


def is_tensor(type_: Attribute) -> TypeGuard[TensorType[Attribute]]:
    """As `is_tensor(type_)`, which takes twenty times as long: it makes the constraint anew."""
    return isinstance(type_, TensorType)


def is_memref(type_: Attribute) -> TypeGuard[MemRefType[Attribute]]:
    """As `is_memref(type_)`, sooner."""
    return isinstance(type_, MemRefType)


def is_vector(type_: Attribute) -> TypeGuard[VectorType[Attribute]]:
    """As `is_vector(type_)`, sooner."""
    return isinstance(type_, VectorType)


def tensor_type(value: SSAValue | Attribute) -> TensorType[Attribute]:
    """The ranked tensor type of a value, or the type itself."""
    candidate = _type(value)
    if is_tensor(candidate):
        return candidate
    raise DtypeConflict(f"expected a ranked tensor, got {candidate}")


def memref_type(value: SSAValue | Attribute) -> MemRefType[Attribute]:
    """The memref type of a value, or the type itself."""
    candidate = _type(value)
    if is_memref(candidate):
        return candidate
    raise DtypeConflict(f"expected a memref, got {candidate}")


def shaped_type(value: SSAValue | Attribute) -> TensorType[Attribute] | MemRefType[Attribute]:
    """The tensor or memref type of a value, or the type itself."""
    candidate = _type(value)
    if isinstance(candidate, TensorType | MemRefType):
        return cast(TensorType[Attribute] | MemRefType[Attribute], candidate)
    raise DtypeConflict(f"expected a ranked tensor or a memref, got {candidate}")


def shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The dimensions of a tensor or memref; a dynamic one is `DYNAMIC_INDEX`."""
    return tuple(shaped_type(value).get_shape())


def static_shape(value: SSAValue | Attribute) -> tuple[int, ...]:
    """The dimensions of a tensor or memref, all known. Raises ShapeConflict when one is dynamic."""
    dimensions = shape(value)
    if DYNAMIC_INDEX in dimensions:
        raise ShapeConflict(f"expected static dimensions, got {_type(value)}")
    return dimensions


def element_type(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor or memref."""
    return shaped_type(value).get_element_type()


def _type(value: SSAValue | Attribute) -> Attribute:
    return value.type if isinstance(value, SSAValue) else value
