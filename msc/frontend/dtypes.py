"""Element types by MindSpore's names: `float32`, `int64`, ...; each knows NumPy's dtype and the name in the IR."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from msc.frontend.errors import ApiTypeError
from msc.support.torch_names import TORCH_NAMES


class DType:
    """An element type. There is one object of each, so `is` and `==` agree. `str` gives MindSpore's `Float32`."""

    __slots__ = ("_label", "category", "ir", "itemsize", "name", "numpy")

    def __init__(self, label: str, ir: str, numpy: np.dtype[Any], category: int) -> None:
        self._label = label
        self.name = "bool_" if label == "Bool" else label.lower()
        self.ir = ir
        self.numpy = numpy
        self.itemsize = numpy.itemsize
        self.category = category
        """BOOLEAN, INTEGER or FLOAT: of two, the higher category decides what both become."""

    def __str__(self) -> str:
        return self._label

    def __repr__(self) -> str:
        return f"msc.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    @property
    def is_float(self) -> bool:
        return self.category == FLOAT

    @property
    def is_integer(self) -> bool:
        """Integers proper, signed or not; booleans are none."""
        return self.category == INTEGER

    @property
    def is_signed(self) -> bool:
        return self.category == FLOAT or self.name.startswith("int")


BOOLEAN, INTEGER, FLOAT = range(3)

bool_ = DType("Bool", "i1", np.dtype(np.bool_), BOOLEAN)
int8 = DType("Int8", "i8", np.dtype(np.int8), INTEGER)
int16 = DType("Int16", "i16", np.dtype(np.int16), INTEGER)
int32 = DType("Int32", "i32", np.dtype(np.int32), INTEGER)
int64 = DType("Int64", "i64", np.dtype(np.int64), INTEGER)
uint8 = DType("UInt8", "ui8", np.dtype(np.uint8), INTEGER)
uint16 = DType("UInt16", "ui16", np.dtype(np.uint16), INTEGER)
uint32 = DType("UInt32", "ui32", np.dtype(np.uint32), INTEGER)
uint64 = DType("UInt64", "ui64", np.dtype(np.uint64), INTEGER)
float16 = DType("Float16", "f16", np.dtype(np.float16), FLOAT)
float32 = DType("Float32", "f32", np.dtype(np.float32), FLOAT)
float64 = DType("Float64", "f64", np.dtype(np.float64), FLOAT)
bfloat16 = DType("BFloat16", "bf16", np.dtype(ml_dtypes.bfloat16), FLOAT)

DTYPES: tuple[DType, ...] = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, bfloat16,
)  # fmt: skip

DTypeLike: TypeAlias = "DType | type | np.dtype[Any] | str"
"""What stands for an element type: `msc.float32`, `np.float32`, `float`, `"float32"`."""

_BY_NUMPY: dict[np.dtype[Any], DType] = {dtype.numpy: dtype for dtype in DTYPES}
_BY_NAME: dict[str, DType] = {
    **{dtype.name: dtype for dtype in DTYPES},
    **{str(dtype): dtype for dtype in DTYPES},
    **{dtype.ir: dtype for dtype in DTYPES},
    "bool": bool_,
    "half": float16,
    "double": float64,
    "int": int64,
    "float": float32,
}
_BY_PYTHON: dict[type, DType] = {bool: bool_, int: int64, float: float32}


def by_name(name: str) -> DType:
    """The element type of a name: MindSpore's (`float32`, `Float32`) or the IR's (`f32`). Raises MSC0801."""
    if name not in _BY_NAME:
        raise _unknown(repr(name))
    return _BY_NAME[name]


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The element type of a NumPy dtype. Raises MSC0801 for one that msc does not compute on, as complex numbers."""
    found = _BY_NUMPY.get(dtype)
    if found is None:
        native = dtype.newbyteorder("=")
        if native not in _BY_NUMPY:
            raise _unknown(f"NumPy's {dtype}")
        return _BY_NUMPY[native]
    return found


def as_dtype(value: DTypeLike) -> DType:
    """The element type that a value stands for. Raises MSC0801."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return by_name(value)
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    try:
        return of_numpy(np.dtype(value))
    except TypeError:
        raise _unknown(repr(value)) from None


def of_python(value: bool | float) -> DType:
    """The element type that a Python number has alone: Bool, Int64 or Float32."""
    return _BY_PYTHON[bool if isinstance(value, bool) else int if isinstance(value, int) else float]


def _unknown(what: str) -> ApiTypeError:
    names = ", ".join(dtype.name for dtype in DTYPES)
    is_device = what.strip("'").partition(":")[0] in ("cpu", "cuda", "mps")
    advice = f"for PyTorch's to: {TORCH_NAMES['to']}" if is_device else f"there are {names}"
    return ApiTypeError("MSC0801", f"{what} is no element type that msc computes on", help=advice)
