"""`Custom`: an operator that a Python function or a function of a shared library computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from msc.frontend.dtypes import as_dtype
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.settings import unused
from msc.frontend.tensor import Tensor, concrete
from msc.ops.primitive import Primitive, several
from msc.support.arrays import Array

__all__ = ["Custom"]


class Custom(Primitive):
    """`Custom(func, out_shape, out_dtype, func_type)`: what `func` says, run at every call.

    With `func_type` "pyfunc" or "hybrid", `func` takes and returns NumPy arrays. With "aot" it is "library.so:name":
    `int name(int n, void **data, int *ranks, int64_t **shapes, const char **dtypes, void *stream, void *extra)` in C,
    over all inputs and then all outputs, which returns 0. `out_shape` and `out_dtype` are values, or functions of the
    inputs' shapes and element types; tuples of lists for several results. `bprop(*inputs, out, dout)` gives the
    gradients by the inputs, of tensors; without it there are none.
    """

    def __init__(
        self,
        func: Callable[..., Any] | str,
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "hybrid",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        super().__init__("Custom")
        unused("Custom", reg_info=reg_info)
        if func_type not in ("pyfunc", "hybrid", "aot"):
            raise ApiValueError("MSC0829", f"Custom: func_type is {func_type!r}, not 'pyfunc', 'hybrid' or 'aot'")
        unused("Custom", func_type="pyfunc" if func_type == "aot" else func_type)
        if (func_type == "aot") != isinstance(func, str):
            raise ApiTypeError(
                "MSC0829",
                f"Custom: with func_type {func_type!r}, func is a {'string' if func_type == 'aot' else 'function'}",
            )
        self.func = func
        self.out_shape = out_shape
        self.out_dtype = out_dtype
        self.func_type = func_type
        self.bprop = bprop

    def __call__(self, *inputs: Any) -> Any:
        return self._differentiated(self._computed, inputs, is_traced=False)

    def _computed(self, *inputs: Any) -> Any:
        arrays = [concrete(x, "Custom") if isinstance(x, Tensor) else np.asarray(x) for x in inputs]
        results = self._from_library(arrays) if isinstance(self.func, str) else self._from_python(self.func, arrays)
        return Tensor.of(results[0]) if len(results) == 1 else tuple(map(Tensor.of, results))

    def _expected(self, arrays: list[Array]) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and dtype of each result. Raises MSC0829 where they are not said."""
        if self.out_shape is None or self.out_dtype is None:
            raise ApiTypeError("MSC0829", "Custom: a function of a library needs out_shape and out_dtype")
        shapes: Any = self.out_shape
        dtypes: Any = self.out_dtype
        if isinstance(shapes, FunctionType):
            shapes = shapes(*(list(a.shape) for a in arrays))
        if isinstance(dtypes, FunctionType):
            dtypes = dtypes(*(as_dtype(a.dtype) for a in arrays))
        if _is_one_shape(shapes):
            return [(tuple(shapes), as_dtype(dtypes).numpy)]
        return [(tuple(shape), as_dtype(dtype).numpy) for shape, dtype in zip(shapes, dtypes, strict=True)]

    def _from_python(self, function: Callable[..., Any], arrays: list[Array]) -> list[Array]:
        given: Any = function(*(a.copy() for a in arrays))
        results: list[Array] = [np.asarray(r) for r in several(given)]
        if self.out_shape is not None and self.out_dtype is not None:
            said = self._expected(arrays)
            if [(r.shape, r.dtype) for r in results] != said:
                found = ", ".join(f"{r.dtype} of {r.shape}" for r in results)
                wanted = ", ".join(f"{dtype} of {shape}" for shape, dtype in said)
                raise ApiValueError("MSC0829", f"Custom: the function gives {found}; it was said to give {wanted}")
        return results

    def _from_library(self, arrays: list[Array]) -> list[Array]:
        outputs = [np.empty(shape, dtype) for shape, dtype in self._expected(arrays)]
        every = [np.ascontiguousarray(a) for a in arrays] + outputs
        count = len(every)
        shapes = [(ctypes.c_int64 * max(a.ndim, 1))(*a.shape) for a in every]
        status = self._compiled(
            ctypes.c_int(count),
            (ctypes.c_void_p * count)(*(a.ctypes.data for a in every)),
            (ctypes.c_int * count)(*(a.ndim for a in every)),
            (ctypes.POINTER(ctypes.c_int64) * count)(*(ctypes.cast(s, ctypes.POINTER(ctypes.c_int64)) for s in shapes)),
            (ctypes.c_char_p * count)(*(a.dtype.name.encode() for a in every)),
            None,
            None,
        )
        if status != 0:
            raise ApiValueError("MSC0829", f"Custom: {self.func} returned {status}")
        return outputs

    @cached_property
    def _compiled(self) -> Any:
        assert isinstance(self.func, str)
        path, _, name = self.func.rpartition(":")
        try:
            function = getattr(ctypes.CDLL(str(Path(path).resolve())), name)
        except (OSError, AttributeError) as error:
            raise ApiValueError("MSC0829", f"Custom: {self.func} cannot be loaded: {error}") from None
        function.restype = ctypes.c_int
        return function


def _is_one_shape(shapes: Any) -> bool:
    """Whether it is the shape of one result, not a tuple of shapes."""
    return type(shapes) is not tuple or shapes == () or isinstance(shapes[0], int)
