"""What operations of the loop stage do that are not inlined in the translated Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType
from xdsl.ir import Attribute, Operation

from msc.dialects.loop import AddProductsOp, CallRowsOp
from msc.interp import loop_memory
from msc.interp.scalars import SCALARS

_REDUCTIONS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "maxui": np.maximum,
    "minui": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _broadcast(op: Operation, x: Any) -> Any:
    shape = cast("VectorType[Attribute]", op.results[0].type).get_shape()
    return np.array(np.broadcast_to(x, shape))


def _reduction(op: Operation, x: Any, *initial: Any) -> Any:
    """All lanes combined; the order is NumPy's, and reassociation is what the operation allows."""
    kind = str(cast(vector.ReductionOp, op).kind.data)
    function = _REDUCTIONS[kind]
    values = x.view(f"u{x.dtype.itemsize}") if kind.endswith("ui") else x
    total = function.reduce(values, dtype=values.dtype)
    if initial:
        total = function(total, initial[0] if values is x else initial[0].view(values.dtype))
    return total if values is x else total.view(x.dtype)


def _extract(op: Operation, x: Any, *dynamic: int) -> Any:
    return x[_position(op, dynamic)]


def _insert(op: Operation, value: Any, x: Any, *dynamic: int) -> Any:
    changed = x.copy()
    changed[_position(op, dynamic)] = value
    return changed


def _position(op: Operation, dynamic: tuple[int, ...]) -> tuple[int, ...]:
    given = iter(dynamic)
    static = cast(Any, op.properties["static_position"]).get_values()
    return tuple(int(next(given)) if n == DYNAMIC_INDEX else int(n) for n in static)


def _dim(op: Operation, x: Any, axis: int) -> int:
    return int(x.shape[axis])


def _add_products(op: Operation, total: Any, *factors: Any) -> Any:
    """The last product first, as instructions do; integers wrap."""
    assert isinstance(op, AddProductsOp)
    terms = len(factors) // 2
    dtype = np.asarray(total).dtype
    for a, b in zip(reversed(factors[:terms]), reversed(factors[terms:]), strict=True):
        x, y = (_extended(each, name, dtype) for each, name in zip((a, b), op.element_types, strict=True))
        total = total + x * y
    return total


def _extended(value: Any, name: str, dtype: Any) -> Any:
    """A factor in the type of the sum; what lies in memory has no sign."""
    stored = np.asarray(value)
    return (stored.view(f"u{stored.itemsize}") if name.startswith("ui") else stored).astype(dtype)


def _library_call(op: Operation, *operands: Any) -> None:
    called = cast(CallRowsOp, op)
    reads, count = len(called.read), len(called.buffers)
    (*row, size), outputs = operands[count:], operands[reads : reads + len(called.outputs)]
    rows = [buffer[tuple(row)][:size] for buffer in operands[:reads]]
    for output, found in zip(outputs, called.call.meaning([o.shape[-1] for o in outputs], *rows), strict=True):
        output[tuple(row)][: len(found)] = found


def _nothing(op: Operation, *_: Any) -> None:
    """Freeing and alignment assumptions change no value."""


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **SCALARS,
    "vector.broadcast": _broadcast,
    "vector.reduction": _reduction,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "loop.add_products": _add_products,
    "loop.call": _library_call,
    "loop.slice": loop_memory.entry,
    "memref.alloc": loop_memory.allocate,
    "memref.alloca": loop_memory.allocate,
    "memref.view": loop_memory.view,
    "memref.subview": loop_memory.subview,
    "memref.reinterpret_cast": loop_memory.reinterpret,
    "memref.expand_shape": loop_memory.reshape,
    "memref.collapse_shape": loop_memory.reshape,
    "memref.cast": loop_memory.same,
    "memref.memory_space_cast": loop_memory.same,
    "memref.copy": loop_memory.copy,
    "memref.dim": _dim,
    "memref.dealloc": _nothing,
    "memref.assume_alignment": _nothing,
}
"""Operation name -> function of the operation and its operands' values."""
