"""Values of inputs as people write them: `axes=0,1`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import GraphProto, ValueInfoProto

from msc.dialects.arrays import Array, numpy_dtype
from msc.importers.failures import failure, shown
from msc.importers.onnx.reading.tensors import dtype_of


def written_values(graph: GraphProto, texts: Mapping[str, str]) -> dict[str, Array]:
    """Arrays of the inputs' own types; an unknown input is left for the binding to complain about. Raises MSC0718."""
    inputs = {info.name: info for info in graph.input}
    return {name: _array(inputs[name], text) if name in inputs else np.array(0) for name, text in texts.items()}


def _array(info: ValueInfoProto, text: str) -> Array:
    type_ = info.type.tensor_type
    dtype = numpy_dtype(dtype_of(type_.elem_type, f"input '{shown(info.name)}'"))
    try:
        words = [word.strip() for word in text.split(",")] if text.strip() else []
        numbers = [float(word) if dtype.kind in "fV" else int(word) for word in words]
        flat = np.array(numbers, np.float64 if dtype.kind in "fV" else np.int64)
    except (ValueError, OverflowError) as error:
        message = f"--input-value {shown(info.name)}={shown(text)}: {error}"
        raise failure("MSC0718", message, help="write numbers with commas between them: axes=0,1") from error
    return flat.astype(dtype).reshape(_shape(info, flat.size))


def _shape(info: ValueInfoProto, count: int) -> tuple[int, ...]:
    """The declared shape with an open size as the count asks for. Raises MSC0718."""
    type_ = info.type.tensor_type
    sizes = [d.dim_value if d.HasField("dim_value") else -1 for d in type_.shape.dim]
    rest = math.prod(n for n in sizes if n >= 0)
    fits = count == rest if -1 not in sizes else sizes.count(-1) == 1 and rest > 0 and count % rest == 0
    if not fits:
        text = "x".join("?" if n < 0 else str(n) for n in sizes) or "a scalar"
        message = f"--input-value {shown(info.name)} has {count} elements, but the input is {text}"
        raise failure("MSC0718", message)
    return tuple(count // rest if n < 0 else n for n in sizes)
