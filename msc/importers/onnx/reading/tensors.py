"""Tensors of a protobuf as arrays, their sizes checked against their data first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from onnx import GraphProto, TensorProto, TensorShapeProto, ValueInfoProto
from onnx.numpy_helper import to_array

from msc.dialects.arrays import Array, numpy_dtype
from msc.importers.failures import failure, shown
from msc.importers.onnx.reading.external_data import ExternalData
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError

DTYPES: Mapping[int, str] = {
    TensorProto.FLOAT: "f32",
    TensorProto.UINT8: "ui8",
    TensorProto.INT8: "i8",
    TensorProto.UINT16: "ui16",
    TensorProto.INT16: "i16",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.BOOL: "i1",
    TensorProto.FLOAT16: "f16",
    TensorProto.DOUBLE: "f64",
    TensorProto.UINT32: "ui32",
    TensorProto.UINT64: "ui64",
    TensorProto.BFLOAT16: "bf16",
}
"""ONNX element types that msc computes on."""

PACKED_BITS: Mapping[int, int] = {
    TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E4M3FNUZ: 8,
    TensorProto.FLOAT8E5M2: 8,
    TensorProto.FLOAT8E5M2FNUZ: 8,
    TensorProto.FLOAT8E8M0: 8,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
}
"""Types that msc converts, but does not compute on: bits of an element."""

MAXIMUM_RANK = 32
MAXIMUM_ELEMENTS = 1 << 40

_FIELDS: Mapping[int, str] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.UINT32: "uint64_data",
}
"""Where elements stand if not in raw_data; the rest are in int32_data."""


def dtype_of(data_type: int, what: str) -> str:
    """The element type of an ONNX number. Raises MSC0704 for one that msc does not compute on."""
    if data_type not in DTYPES:
        raise failure("MSC0704", f"{what} has element type {type_name(data_type)}, which msc does not compute on")
    return DTYPES[data_type]


def type_name(data_type: int) -> str:
    """ONNX's word for an element type."""
    names = {number: name for name, number in TensorProto.DataType.items()}
    return names[data_type].lower() if data_type in names else str(data_type)


class TensorReader:
    """Reads the tensors of one model."""

    def __init__(self, external: ExternalData | None) -> None:
        self._external = external

    def __call__(self, tensor: TensorProto) -> Array:
        """The array of a tensor; a large one shares the bytes of the file. Raises MSC0704, MSC0706 to MSC0709."""
        what = f"tensor '{shown(tensor.name)}'"
        shape = checked_shape(tensor.dims, what)
        if tensor.data_type in PACKED_BITS:
            return self._packed(tensor, shape)
        dtype = numpy_dtype(dtype_of(tensor.data_type, what))
        size = math.prod(shape) * dtype.itemsize
        if tensor.data_location == TensorProto.EXTERNAL:
            return _viewed(self._external_bytes(tensor, size), dtype, shape)
        if tensor.HasField("raw_data"):
            return self._raw(tensor, dtype, shape, size)
        return self._typed(tensor, dtype, shape)

    def _packed(self, tensor: TensorProto, shape: tuple[int, ...]) -> Array:
        """A tensor of a type of eight bits or fewer, in NumPy's type for it."""
        size = -(-math.prod(shape) * PACKED_BITS[tensor.data_type] // 8)
        if tensor.data_location == TensorProto.EXTERNAL:
            copy = TensorProto(
                dims=shape, data_type=tensor.data_type, raw_data=bytes(self._external_bytes(tensor, size))
            )
            return to_array(copy)
        if tensor.HasField("raw_data") and len(tensor.raw_data) != size:
            raise _wrong_size(tensor, f"{len(tensor.raw_data)} bytes", f"{size}")
        if not tensor.HasField("raw_data") and len(tensor.int32_data) not in (size, math.prod(shape)):
            raise _wrong_size(tensor, f"{len(tensor.int32_data)} elements", f"{size}")
        return to_array(tensor)

    def _external_bytes(self, tensor: TensorProto, size: int) -> memoryview:
        if self._external is None:
            raise failure("MSC0706", f"tensor '{shown(tensor.name)}' is external, but the model is not a file")
        return self._external.bytes_of(tensor, size)

    def _raw(self, tensor: TensorProto, dtype: np.dtype[Any], shape: tuple[int, ...], size: int) -> Array:
        raw = tensor.raw_data
        if len(raw) != size:
            raise _wrong_size(tensor, f"{len(raw)} bytes", f"{size}")
        return _viewed(raw, dtype, shape)

    def _typed(self, tensor: TensorProto, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        elements: Sequence[float] = getattr(tensor, _FIELDS.get(tensor.data_type, "int32_data"))
        if len(elements) != math.prod(shape):
            raise _wrong_size(tensor, f"{len(elements)} elements", f"{math.prod(shape)}")
        if dtype.itemsize == 2 and dtype.kind not in "iu":
            return (np.array(elements, np.int64) & 0xFFFF).astype(np.uint16).view(dtype).reshape(shape)
        return np.array(elements).astype(dtype).reshape(shape)


def _viewed(data: bytes | memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if dtype == np.bool_:
        return (np.frombuffer(data, np.uint8) != 0).reshape(shape)
    array = np.frombuffer(data, np.dtype(dtype).newbyteorder("<") if dtype.kind != "V" else dtype).reshape(shape)
    return array.astype(dtype, copy=False)


def checked_shape(dims: Sequence[int], what: str) -> tuple[int, ...]:
    """A shape without negative or absurd sizes. Raises MSC0708."""
    shape = tuple(dims)
    if len(shape) > MAXIMUM_RANK or any(n < 0 for n in shape) or math.prod(shape) > MAXIMUM_ELEMENTS:
        text = "x".join(map(str, shape[:MAXIMUM_RANK]))
        raise failure("MSC0708", f"{what} has shape {text}: sizes must not be negative, nor elements more than 2^40")
    return shape


def _wrong_size(tensor: TensorProto, found: str, wanted: str) -> MscError:
    return failure("MSC0709", f"tensor '{shown(tensor.name)}' holds {found}, but its type takes {wanted}")


def dimension_names(info: ValueInfoProto) -> tuple[str, ...]:
    """The name of each dimension of a graph input that is open, "" for one that is not; without a name, `x.0`."""
    return tuple(
        "" if d.HasField("dim_value") and d.dim_value >= 0 else dimension_name(d) or f"{info.name}.{k}"
        for k, d in enumerate(info.type.tensor_type.shape.dim)
    )


_NO_NAMES = frozenset({"?", "*", "-", "_", "-1", "none", "unk", "unknown", "dynamic", "any"})
"""What exporters write for every size that they do not know: two dimensions called so are not the same."""


def dimension_name(dimension: TensorShapeProto.Dimension) -> str:
    """The name of a dimension of a graph input or result, "" where it has none that tells it from others."""
    name = dimension.dim_param.strip()
    return "" if name.lower() in _NO_NAMES else name


def input_shape(info: ValueInfoProto, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a graph input: open sizes as `dims` binds them, else -1. Raises MSC0708, MSC0713."""
    what = f"input '{shown(info.name)}'"
    type_ = info.type.tensor_type
    if not type_.HasField("shape"):
        advice = f"call it with arrays, from Python or as in: msc run MODEL --input {shown(info.name)}=@file.npy"
        raise DecidedByCall(Diagnostic("MSC0713", f"{what} has no shape", help=advice))
    names = dimension_names(info)
    sizes = [dims.get(name, -1) if name else d.dim_value for name, d in zip(names, type_.shape.dim, strict=True)]
    checked_shape([max(n, 0) for n in sizes], what)
    return tuple(sizes)


def declared_tensors(
    graph: GraphProto, what: Literal["input", "output"]
) -> Iterator[tuple[str, str, tuple[int | str, ...] | None, int]]:
    """Name, element type, shape and ONNX's number of the type of each input or output of a graph.

    Open sizes are names, a shape that is not given is None; types of less than 8 bits and float8 are codes, ui8.
    """
    constants = {tensor.name for tensor in graph.initializer} if what == "input" else frozenset[str]()
    for info in graph.input if what == "input" else graph.output:
        if info.name not in constants:
            type_ = info.type.tensor_type
            number = type_.elem_type
            dtype = "ui8" if number in PACKED_BITS else dtype_of(number, f"{what} '{shown(info.name)}'")
            sizes = zip(dimension_names(info), type_.shape.dim, strict=True)
            shape = tuple(n or d.dim_value for n, d in sizes) if type_.HasField("shape") else None
            yield info.name, dtype, shape, number
