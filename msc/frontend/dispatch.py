"""Running an operation: at once on concrete tensors, or as an operation of the graph that is being captured."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from msc.frontend.capture import INSTALLED, Property, Symbol
from msc.frontend.dtypes import DType, float32
from msc.frontend.parameter import Parameter
from msc.frontend.precision import ComputePrecision, computing_in, converted, converted_operands
from msc.frontend.tensor import Tensor, apart, concrete
from msc.support.arrays import Array

if TYPE_CHECKING:
    from msc.frontend.immediate import Prepared

_MOST_PREPARED = 1 << 14
_PREPARED: dict[tuple[object, ...], Prepared] = {}
"""What has been made ready to run, by operation, properties, element types and shapes."""


def apply(name: str, *operands: Tensor | None, **properties: Property) -> Tensor:
    """The result of `ms.<name>`; an absent optional operand is None. Raises the errors that the operation verifies.

    Under capture the operation is written into the graph if an operand is symbolic or a parameter.
    """
    return apply_all(name, *operands, **properties)[0]


def apply_all(name: str, *operands: Tensor | None, **properties: Property) -> tuple[Tensor, ...]:
    """All results of `ms.<name>`."""
    precision = ComputePrecision.current
    if precision is not None and (dtype := precision.type_for(name)) is not None:
        return _computed_in(dtype, precision, name, operands, properties)
    builder = INSTALLED.builder
    if builder is not None and any(map(_belongs_to_graph, operands)):
        return builder.emit(name, operands, properties)
    arrays = [None if operand is None else concrete(operand) for operand in operands]
    return tuple(map(Tensor.of, run(name, arrays, properties)))


def _computed_in(
    dtype: DType,
    precision: ComputePrecision,
    name: str,
    operands: tuple[Tensor | None, ...],
    properties: dict[str, Property],
) -> tuple[Tensor, ...]:
    """The results of an operation that a precision computes in a type; those of a named one are f32 again."""
    with computing_in(ComputePrecision(dtype, frozenset())):
        results = apply_all(name, *converted_operands(dtype, operands), **properties)
        return results if precision.operations is None else tuple(converted(r, float32) for r in results)


def _belongs_to_graph(operand: Tensor | None) -> bool:
    return operand is not None and (isinstance(operand.content, Symbol) or isinstance(operand, Parameter))


def run(name: str, arrays: list[Array | None], properties: dict[str, Property]) -> tuple[Array, ...]:
    """The results of `ms.<name>` on arrays, by the interpreter's meaning of the operation."""
    key = (name, *properties.items(), *[None if a is None else (a.dtype.num, a.shape) for a in arrays])
    try:
        prepared = _PREPARED.get(key)
    except TypeError:  # a property that has no hash: a list, or what no operation takes
        hashed: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in properties.items()}
        return _prepare(name, arrays, hashed).run([a for a in arrays if a is not None])
    if prepared is None:
        prepared = _prepare(name, arrays, properties)
        if len(_PREPARED) >= _MOST_PREPARED:
            _PREPARED.clear()
        _PREPARED[key] = prepared
    present = [a for a in arrays if a is not None]
    return tuple(_of_its_own(result, present) for result in prepared.run(present))


def _of_its_own(result: Array, arrays: list[Array]) -> Array:
    """A result that is another tensor's than its operands."""
    if result.base is not None or any(result is a for a in arrays):
        for array in arrays:
            result = apart(result, array)
    return result


def _prepare(name: str, arrays: list[Array | None], properties: dict[str, Property]) -> Prepared:
    return _immediate()(name, arrays, properties)


@cache
def _immediate() -> Any:
    """Loads xDSL and the interpreter: not before the first operation."""
    from msc.frontend.immediate import prepare

    return prepare


def scalar(value: bool | float, dtype: np.dtype[Any]) -> Tensor:
    """A tensor of rank 0 with an element type, as NumPy converts the number."""
    return Tensor.of(np.array(value).astype(dtype))
