"""Reading a `.tflite` file without trusting it: a FlatBuffer of the TensorFlow Lite schema, as plain records.

A FlatBuffer is a web of offsets. The package `flatbuffers` follows them without checks: what leads out of the file
raises some exception there, and what leads to a wrong place gives numbers of any size. So every length is checked
against the file before anything is read of it, everything that is read is counted, and each exception is one error.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np

from msc.dialects.arrays import Array
from msc.importers.failures import failure, shown
from msc.support.files import near_file
from msc.support.plain_files import content

IDENTIFIER = b"TFL3"
LARGEST = 1 << 33
"""Bytes of a file."""

_MOST = 2_000_000
"""Records that are read of a file: a small one may name the same table a million times."""
_MOST_AXES = 8
_MOST_ELEMENTS = 1 << 40

T = TypeVar("T")

_TYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in (
        ("FLOAT32", "f4"),
        ("FLOAT16", "f2"),
        ("INT32", "i4"),
        ("UINT8", "u1"),
        ("INT64", "i8"),
        ("BOOL", "?"),
        ("INT16", "i2"),
        ("INT8", "i1"),
        ("FLOAT64", "f8"),
        ("UINT64", "u8"),
        ("UINT32", "u4"),
        ("UINT16", "u2"),
        ("INT4", "i1"),
        ("BFLOAT16", ml_dtypes.bfloat16),
    )
}
"""Element types that msc computes on; int4 is unpacked when it is read."""


@cache
def schema() -> Any:
    """The package `tflite`: classes of the schema, which have no types of their own."""
    return import_module("tflite")


@dataclass(frozen=True, eq=False)
class Quantisation:
    """Real numbers as integers: `real = (integer - zero) * scale`, for all of a tensor or for each index of an axis."""

    scales: Array
    """f32, one or one an index."""
    zeros: Array
    """i64, as many."""
    axis: int


@dataclass(frozen=True, eq=False)
class TensorRecord:
    """A tensor of a subgraph as the file declares it."""

    name: str
    type: str
    """The schema's name of its element type: "INT8"."""
    shape: tuple[int, ...]
    is_open: bool
    """Whether a size is left open: `shape` then has 1 there."""
    quantisation: Quantisation | None
    array: Array | None
    """Its value, if it is a constant."""
    is_variable: bool = False

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """NumPy's name of the type; None for one that msc does not compute on."""
        return _TYPES.get(self.type)


@dataclass(frozen=True, eq=False)
class OperatorRecord:
    """An operator; indices of tensors are -1 for an optional one that is not given."""

    index: int
    name: str
    """The schema's name: "CONV_2D"; of a custom operator its own."""
    is_custom: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    """The table of its options, or None."""
    options_type: int


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A subgraph."""

    name: str
    tensors: list[TensorRecord]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[OperatorRecord] = field(default_factory=list[OperatorRecord])


def read_file(path: Path) -> list[Subgraph]:
    """The subgraphs of a file. Raises MSC0701 (unreadable), and what `read_model` raises."""
    try:
        data = content(path, LARGEST)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise failure("MSC0701", f"cannot read '{path}': {reason}", help=near_file(path)) from error
    return read_model(data, str(path))


def read_model(data: bytes, name: str) -> list[Subgraph]:
    """The subgraphs of a file's bytes. Raises MSC0702 for a damaged file, MSC0704, MSC0708, MSC0709 and MSC0714."""
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise failure("MSC0702", f"'{name}' is not a TensorFlow Lite model: it does not begin as one ('TFL3')")
    with _damage(name):
        return list(_Reader(data, name).graphs())


@contextmanager
def _damage(name: str) -> Generator[None]:
    """Say of any exception of the packages that the file is damaged."""
    try:
        yield
    except (struct.error, ValueError, TypeError, IndexError, OverflowError, AttributeError, MemoryError) as error:
        message = f"'{name}' is damaged or truncated: an offset or a length leads out of the file"
        raise failure("MSC0702", message) from error


class _Reader:
    """Reads the tables of one file."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name = data, name
        self._model = schema().Model.GetRootAs(data, 0)
        self._count = 0
        self._buffers: dict[int, Array | None] = {}
        self._operators = _names(schema().BuiltinOperator)
        self._types = _names(schema().TensorType)

    def graphs(self) -> Iterator[Subgraph]:
        codes = list(self._each(self._model.OperatorCodesLength(), self._model.OperatorCodes))
        for graph in self._each(self._model.SubgraphsLength(), self._model.Subgraphs):
            tensors = [self._tensor(t) for t in self._each(graph.TensorsLength(), graph.Tensors)]
            operators = list(self._each(graph.OperatorsLength(), graph.Operators))
            records = [self._operator(k, each, codes, len(tensors)) for k, each in enumerate(operators)]
            inputs, outputs = (self._indices(v, len(tensors)) for v in (graph.InputsAsNumpy(), graph.OutputsAsNumpy()))
            yield Subgraph(self._text(graph.Name()), tensors, inputs, outputs, records)

    def _each(self, length: int, at: Callable[[int], T]) -> Iterator[T]:
        """The tables of a vector."""
        if 4 * length > len(self._data):
            raise ValueError("a vector is longer than the file")
        for k in range(length):
            self._spend(1)
            yield at(k)

    def _spend(self, count: int) -> None:
        self._count += count
        if self._count > _MOST:
            raise failure("MSC0714", f"'{self._name}' has more than {_MOST:,} tensors, operators and their inputs")

    def _numbers(self, vector: Any) -> list[int]:
        """A vector of numbers; the package gives 0 for one that is not there."""
        if isinstance(vector, int):
            return []
        self._spend(len(vector))
        return [int(v) for v in vector]

    def _indices(self, vector: Any, tensors: int, least: int = 0) -> tuple[int, ...]:
        """Indices of tensors. Raises MSC0705."""
        found = tuple(self._numbers(vector))
        for index in found:
            if not least <= index < tensors:
                raise failure("MSC0705", f"'{self._name}' names tensor {index} of a subgraph that has {tensors}")
        return found

    def _text(self, raw: bytes | None) -> str:
        return (raw or b"").decode("utf-8", "replace")

    def _operator(self, index: int, operator: Any, codes: list[Any], tensors: int) -> OperatorRecord:
        number = int(operator.OpcodeIndex())
        if not 0 <= number < len(codes):
            raise failure("MSC0705", f"operator {index} of '{self._name}' has code {number}; the file has {len(codes)}")
        code = codes[number]
        builtin = max(int(code.DeprecatedBuiltinCode()), int(code.BuiltinCode()))
        name = self._operators.get(builtin, f"number {builtin}")
        is_custom = name in ("CUSTOM", "DELEGATE")
        custom = self._text(code.CustomCode()) or name
        options, kind = operator.BuiltinOptions(), int(operator.BuiltinOptionsType())
        inputs = self._indices(operator.InputsAsNumpy(), tensors, -1)
        outputs = self._indices(operator.OutputsAsNumpy(), tensors)
        return OperatorRecord(index, custom if is_custom else name, is_custom, inputs, outputs, options, kind)

    def _tensor(self, tensor: Any) -> TensorRecord:
        name = self._text(tensor.Name())
        shape = tuple(self._numbers(tensor.ShapeAsNumpy()))
        if len(shape) > _MOST_AXES or min(shape, default=0) < 0 or math.prod(shape) > _MOST_ELEMENTS:
            text = "x".join(map(str, shape[:_MOST_AXES]))
            raise failure("MSC0708", f"tensor '{shown(name)}' of '{self._name}' has the absurd shape {text}")
        signature = self._numbers(tensor.ShapeSignatureAsNumpy())
        type_ = self._types.get(int(tensor.Type()), f"number {tensor.Type()}")
        array = self._value(tensor, name, type_, shape)
        if array is not None and tensor.Sparsity() is not None:
            raise failure("MSC0704", f"tensor '{shown(name)}' is stored sparse, which msc does not read")
        quantisation = self._quantisation(tensor.Quantization(), name, shape)
        return TensorRecord(name, type_, shape, -1 in signature, quantisation, array, bool(tensor.IsVariable()))

    def _quantisation(self, table: Any, name: str, shape: tuple[int, ...]) -> Quantisation | None:
        """Scales and zero points, if there are any. Raises MSC0730."""
        if table is None or table.ScaleLength() == 0:
            return None
        scales = table.ScaleAsNumpy()
        zeros = np.zeros(scales.size, np.int64) if table.ZeroPointLength() == 0 else table.ZeroPointAsNumpy()
        zeros = np.broadcast_to(zeros, scales.shape) if zeros.size == 1 else zeros
        self._spend(scales.size)
        axis = int(table.QuantizedDimension())
        fits = scales.size == 1 or (0 <= axis < len(shape) and shape[axis] == scales.size)
        if not fits or zeros.size != scales.size or not (np.isfinite(scales) & (scales >= 0)).all():
            message = f"tensor '{shown(name)}' has {scales.size} scales and {zeros.size} zero points for axis {axis}"
            help_ = "scales are finite and not negative: one, or one an index of the axis; zero points are as many"
            raise failure("MSC0730", message, help=help_)
        return Quantisation(scales.astype(np.float32), zeros.astype(np.int64), axis)

    def _value(self, tensor: Any, name: str, type_: str, shape: tuple[int, ...]) -> Array | None:
        """The array of a constant, which shares the file's bytes. Raises MSC0709."""
        data = self._buffer(int(tensor.Buffer()), name)
        if data is None:
            return None
        dtype = _TYPES.get(type_)
        if dtype is None:
            raise failure("MSC0704", f"constant '{shown(name)}' is of type {type_}, which msc does not compute on")
        count = math.prod(shape)
        wanted = (count + 1) // 2 if type_ == "INT4" else count * dtype.itemsize
        if data.size != wanted:
            message = f"constant '{shown(name)}' has {data.size} bytes; its shape and type take {wanted}"
            raise failure("MSC0709", message)
        if type_ == "INT4":
            return _unpacked(data, count).reshape(shape)
        array = data.view(np.uint8 if dtype == np.bool_ else dtype) if count else np.zeros(0, dtype)
        return (array != 0 if dtype == np.bool_ else array).reshape(shape)

    def _buffer(self, index: int, name: str) -> Array | None:
        """The bytes of a buffer; None if it is empty, which says that the tensor is no constant."""
        if index not in self._buffers:
            if not 0 <= index < self._model.BuffersLength():
                raise failure("MSC0705", f"tensor '{shown(name)}' names buffer {index}, which is not there")
            buffer = self._model.Buffers(index)
            data = buffer.DataAsNumpy() if buffer.DataLength() else None
            begin, size = int(buffer.Offset()), int(buffer.Size())
            if data is None and size > 0 and begin > 1:
                if begin + size > len(self._data):
                    raise ValueError("a buffer lies outside the file")
                data = np.frombuffer(self._data, np.uint8, size, begin)
            self._buffers[index] = data
        return self._buffers[index]


def _unpacked(data: Array, count: int) -> Array:
    """Signed numbers of four bits, the lower half of a byte first."""
    low, high = (data << 4).view(np.int8) >> 4, data.view(np.int8) >> 4
    return np.stack([low, high], axis=1).reshape(-1)[:count]


def _names(enumeration: Any) -> dict[int, str]:
    """The names of an enumeration of the schema, by number."""
    given = cast("dict[str, object]", vars(enumeration))
    return {value: name for name, value in given.items() if isinstance(value, int)}
