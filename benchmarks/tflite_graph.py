"""A writer of `.tflite` files over the packages `flatbuffers` and `tflite`, and a program that runs them.

graph = TfliteGraph()
x = graph.input("x", (1, 4), Codes(0.5, 3))
y = graph.op("RELU", [x], (1, 4), Codes(0.25, -128))
data = graph.bytes([y])
results = run_micro(data, [np.zeros((1, 4), np.int8)])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_TYPES = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int4": "INT4",
    "int8": "INT8",
    "uint8": "UINT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
}


@dataclass(frozen=True)
class Codes:
    """How integers stand for reals: `real = (integer - zero) * scale`; scales are one, or one an index of `axis`."""

    scale: float | tuple[float, ...]
    zero: int = 0
    dtype: str = "int8"
    axis: int = 0

    @property
    def scales(self) -> tuple[float, ...]:
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    codes: Codes | None
    buffer: int
    is_variable: bool = False


@dataclass(frozen=True)
class _Operator:
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: tuple[str, Mapping[str, Any]] | None
    custom: str = ""


@dataclass
class TfliteGraph:
    """One subgraph under construction; tensors are their numbers, -1 is an input that is not given."""

    tensors: list[_Tensor] = field(default_factory=list[_Tensor])
    operators: list[_Operator] = field(default_factory=list[_Operator])
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    inputs: list[int] = field(default_factory=list[int])

    def _tensor(
        self, name: str, shape: Sequence[int], kind: Codes | str, buffer: int = 0, variable: bool = False
    ) -> int:
        codes = kind if isinstance(kind, Codes) else None
        dtype = kind.dtype if isinstance(kind, Codes) else kind
        self.tensors.append(_Tensor(name or f"t{len(self.tensors)}", tuple(shape), dtype, codes, buffer, variable))
        return len(self.tensors) - 1

    def input(self, name: str, shape: Sequence[int], kind: Codes | str = "float32") -> int:
        self.inputs.append(self._tensor(name, shape, kind))
        return self.inputs[-1]

    def constant(self, array: Array, codes: Codes | None = None, name: str = "") -> int:
        data = np.ascontiguousarray(array)
        if codes is not None and codes.dtype == "int4":
            even = data.size + data.size % 2
            halves = np.append(data.reshape(-1), np.int8(0)).astype(np.int8)[:even].view(np.uint8) & 15
            data = halves[::2] | halves[1::2] << 4
        self.buffers.append(data.tobytes())
        return self._tensor(name, array.shape, codes or array.dtype.name, len(self.buffers) - 1)

    def variable(self, shape: Sequence[int], kind: Codes | str = "float32", name: str = "") -> int:
        return self._tensor(name, shape, kind, variable=True)

    def ops(
        self,
        name: str,
        inputs: Sequence[int],
        results: Sequence[tuple[Sequence[int], Codes | str]],
        options: tuple[str, Mapping[str, Any]] | None = None,
        custom: str = "",
    ) -> list[int]:
        """An operator; `options` are a table of the schema by its fields: `("PackOptions", {"Axis": 1})`."""
        outputs = [self._tensor("", shape, kind) for shape, kind in results]
        self.operators.append(_Operator(name, tuple(inputs), tuple(outputs), options, custom))
        return outputs

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        kind: Codes | str = "float32",
        options: tuple[str, Mapping[str, Any]] | None = None,
    ) -> int:
        return self.ops(name, inputs, [(shape, kind)], options)[0]

    def bytes(self, outputs: Sequence[int]) -> bytes:
        """The file."""
        return _Writer(self).file(outputs)


class _Writer:
    """Writes one file, from its leaves to its root, as a FlatBuffer is."""

    def __init__(self, graph: TfliteGraph) -> None:
        self.graph = graph
        self.schema: Any = import_module("tflite")
        self.builder: Any = import_module("flatbuffers").Builder(1 << 16)

    def file(self, outputs: Sequence[int]) -> bytes:
        graph = self.graph
        codes = sorted({(o.name, o.custom) for o in graph.operators})
        buffers = [self._table("Buffer", Data=self._data(data)) for data in graph.buffers]
        tensors = [self._write_tensor(tensor) for tensor in graph.tensors]
        operators = [self._write_operator(o, codes.index((o.name, o.custom))) for o in graph.operators]
        subgraph = self._table(
            "SubGraph",
            Tensors=self._vector(tensors),
            Inputs=self._numbers(graph.inputs, np.int32),
            Outputs=self._numbers(outputs, np.int32),
            Operators=self._vector(operators),
            Name=self.builder.CreateString("main"),
        )
        written = [self._write_code(*code) for code in codes]
        model = self._table(
            "Model",
            Version=3,
            OperatorCodes=self._vector(written),
            Subgraphs=self._vector([subgraph]),
            Description=self.builder.CreateString(""),
            Buffers=self._vector(buffers),
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _table(self, kind: str, **fields: Any) -> int:
        getattr(self.schema, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            if value is not None:
                getattr(self.schema, f"{kind}Add{name}")(self.builder, value)
        return getattr(self.schema, f"{kind}End")(self.builder)

    def _vector(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return self.builder.EndVector()

    def _numbers(self, values: Sequence[float], dtype: Any) -> int:
        return self.builder.CreateNumpyVector(np.asarray(values, dtype))

    def _data(self, data: bytes) -> int | None:
        """Bytes on a boundary of 16, where the vectors of the device want them."""
        if not data:
            return None
        self.builder.StartVector(1, len(data), 16)
        self.builder.head -= len(data)
        self.builder.Bytes[self.builder.head : self.builder.head + len(data)] = data
        return self.builder.EndVector()

    def _write_tensor(self, tensor: _Tensor) -> int:
        quantisation = None
        if tensor.codes is not None:
            scales = tensor.codes.scales
            quantisation = self._table(
                "QuantizationParameters",
                Scale=self._numbers(scales, np.float32),
                ZeroPoint=self._numbers([tensor.codes.zero] * len(scales), np.int64),
                QuantizedDimension=tensor.codes.axis,
            )
        return self._table(
            "Tensor",
            Shape=self._numbers(tensor.shape, np.int32),
            Type=getattr(self.schema.TensorType, _TYPES[tensor.dtype]),
            Buffer=tensor.buffer,
            Name=self.builder.CreateString(tensor.name),
            Quantization=quantisation,
            IsVariable=tensor.is_variable,
        )

    def _write_code(self, name: str, custom: str) -> int:
        number = getattr(self.schema.BuiltinOperator, name)
        text = self.builder.CreateString(custom) if custom else None
        return self._table(
            "OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number, Version=1, CustomCode=text
        )

    def _write_operator(self, operator: _Operator, code: int) -> int:
        options, kind = None, 0
        if operator.options is not None:
            name, fields = operator.options
            kind = getattr(self.schema.BuiltinOptions, name)
            given = {k: self._numbers(v, np.int32) if not isinstance(v, int | float) else v for k, v in fields.items()}
            options = self._table(name, **given)
        return self._table(
            "Operator",
            OpcodeIndex=code,
            Inputs=self._numbers(operator.inputs, np.int32),
            Outputs=self._numbers(operator.outputs, np.int32),
            BuiltinOptionsType=kind,
            BuiltinOptions=options,
        )


def run_micro(data: bytes, inputs: Sequence[Array], arena: int = 1 << 22) -> list[Array]:
    """The results of a file by TensorFlow Lite for Microcontrollers (the package `tflite-micro`)."""
    runtime: Any = import_module("tflite_micro").runtime
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=arena)
    for index, array in enumerate(inputs):
        interpreter.set_input(array, index)
    interpreter.invoke()
    count = import_module("tflite").Model.GetRootAs(data, 0).Subgraphs(0).OutputsLength()
    return [np.asarray(interpreter.get_output(index)) for index in range(count)]
