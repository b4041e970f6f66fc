"""Sparse tensors: places and values of what is not 0. They are kept as they are given; `to_dense` gives a tensor."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, concrete, tensor_method
from msc.ops import arithmetic, creation, linear, scattering, selection, shapes, unary
from msc.ops.operands import cast
from msc.support.argument_values import described

__all__ = [
    "COOTensor",
    "CSRTensor",
    "RowTensor",
    "coo_to_dense",
    "csr_to_coo",
    "csr_to_dense",
    "dense_to_sparse_coo",
    "dense_to_sparse_csr",
]


class _Sparse:
    """Base: `shape`, `values` and what is common."""

    values: Tensor
    _shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tensor that this stands for."""
        return self._shape

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The sizes of the tensor that this stands for."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """How many values are kept."""
        return self.values.size

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return self.values.itemsize

    @abstractmethod
    def to_dense(self) -> Tensor:
        """The tensor that this stands for."""

    @abstractmethod
    def _like(self, values: Tensor) -> Any: ...

    def astype(self, dtype: Any) -> Any:
        """The same places with values in another element type."""
        return self._like(self.values.astype(dtype))

    def abs(self) -> Any:
        """The sizes of the values."""
        return self._like(unary.abs(self.values))

    def __neg__(self) -> Any:
        return self._like(unary.neg(self.values))

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Tensor) and other.ndim:
            return dense_to_sparse_coo(arithmetic.mul(self.to_dense(), other))
        return self._like(arithmetic.mul(self.values, other))

    def __truediv__(self, other: Any) -> Any:
        return self._like(arithmetic.div(self.values, other))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={list(self._shape)}, dtype={self.dtype}, {self.size} values)"


def _given(name: str, **parts: Any) -> None:
    for part, value in parts.items():
        if not isinstance(value, Tensor):
            raise ApiTypeError("MSC0811", f"{name}: {part} is {described(value)}; it must be a Tensor")


class COOTensor(_Sparse):
    """`values` `[n]` at `indices` `[n, rank]`, 0 elsewhere. Values of equal indices are added."""

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, coo_tensor: Any = None) -> None:
        if coo_tensor is not None:
            indices, values, shape = coo_tensor.indices, coo_tensor.values, coo_tensor.shape
        _given("COOTensor", indices=indices, values=values)
        self.indices, self.values, self._shape = indices, values, tuple(shape)
        if indices.ndim != 2 or indices.shape != (values.shape[0], len(self._shape)):
            message = f"COOTensor: indices of {indices.shape} for values of {values.shape} in {self._shape}"
            raise ApiValueError("MSC0201", message, help="indices are [values, rank]")

    def _like(self, values: Tensor) -> COOTensor:
        return COOTensor(self.indices, values, self._shape)

    def to_dense(self) -> Tensor:
        return scattering.scatter_nd(self.indices, self.values, self._shape)

    def to_tuple(self) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """Indices, values and shape."""
        return self.indices, self.values, self._shape

    def to_csr(self) -> CSRTensor:
        """By rows; of a matrix."""
        return dense_to_sparse_csr(self.to_dense())

    def coalesce(self) -> COOTensor:
        """With each index once."""
        found, inverse = np.unique(concrete(self.indices), axis=0, return_inverse=True)
        total = scattering.unsorted_segment_sum(self.values, Tensor(inverse.reshape(-1)), len(found))
        return COOTensor(Tensor(found), total, self._shape)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, COOTensor):
            return dense_to_sparse_coo(arithmetic.add(self.to_dense(), other.to_dense()))
        return arithmetic.add(self.to_dense(), other)


class CSRTensor(_Sparse):
    """Values of a matrix row by row: `indptr` says where rows begin, `indices` in which column values stand."""

    def __init__(
        self, indptr: Any = None, indices: Any = None, values: Any = None, shape: Any = None, csr_tensor: Any = None
    ) -> None:
        if csr_tensor is not None:
            indptr, indices, values, shape = csr_tensor.indptr, csr_tensor.indices, csr_tensor.values, csr_tensor.shape
        _given("CSRTensor", indptr=indptr, indices=indices, values=values)
        self.indptr, self.indices, self.values, self._shape = indptr, indices, values, tuple(shape)
        if len(self._shape) != 2 or indptr.shape != (self._shape[0] + 1,) or indices.shape[:1] != values.shape[:1]:
            message = f"CSRTensor: indptr of {indptr.shape}, indices of {indices.shape}, values of {values.shape}"
            raise ApiValueError("MSC0201", f"{message} do not fit {self._shape}", help="indptr is [rows + 1]")

    def _like(self, values: Tensor) -> CSRTensor:
        return CSRTensor(self.indptr, self.indices, values, self._shape)

    def _rows(self) -> Tensor:
        begins = concrete(self.indptr, "CSRTensor")
        return Tensor(np.repeat(np.arange(len(begins) - 1), np.diff(begins)), dtypes.int64)

    def to_coo(self) -> COOTensor:
        """With the indices of rows written out."""
        from msc.ops.joining import stack

        return COOTensor(stack([self._rows(), cast(self.indices, dtypes.int64)], 1), self.values, self._shape)

    def to_dense(self) -> Tensor:
        return self.to_coo().to_dense()

    def to_tuple(self) -> tuple[Tensor, Tensor, Tensor, tuple[int, ...]]:
        """Where rows begin, columns, values and shape."""
        return self.indptr, self.indices, self.values, self._shape

    def mv(self, dense_vector: Tensor) -> Tensor:
        """The product with a vector, as a column `[n, 1]` of which one comes back."""
        taken = shapes.reshape(dense_vector, (-1,))[cast(self.indices, dtypes.int64)]
        sums = scattering.unsorted_segment_sum(arithmetic.mul(self.values, taken), self._rows(), self._shape[0])
        return shapes.reshape(sums, (-1, *dense_vector.shape[1:]))

    def mm(self, matrix: Any) -> Any:
        """The product with a matrix, which may be sparse as well."""
        if isinstance(matrix, CSRTensor):
            return dense_to_sparse_csr(linear.matmul(self.to_dense(), matrix.to_dense()))
        return linear.matmul(self.to_dense(), matrix)

    def sum(self, axis: int) -> Tensor:
        """The sums of rows (axis 1) or columns (axis 0), with that axis kept."""
        from msc.ops.reductions import sum

        return sum(self.to_dense(), axis, True)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, CSRTensor):
            return dense_to_sparse_csr(arithmetic.add(self.to_dense(), other.to_dense()))
        return arithmetic.add(self.to_dense(), other)


class RowTensor(_Sparse):
    """`values` `[n, ...]` are the rows `indices` `[n]` of a tensor that is 0 elsewhere: as gradients of tables are."""

    def __init__(self, indices: Any = None, values: Any = None, shape: Any = None, row_tensor: Any = None) -> None:
        if row_tensor is not None:
            indices, values, shape = row_tensor.indices, row_tensor.values, row_tensor.shape
        _given("RowTensor", indices=indices, values=values)
        self.indices, self.values, self._shape = indices, values, tuple(shape)
        if indices.ndim != 1 or values.shape != (indices.shape[0], *self._shape[1:]):
            message = f"RowTensor: values of {values.shape} at indices of {indices.shape} do not fit {self._shape}"
            raise ApiValueError("MSC0201", message)

    def _like(self, values: Tensor) -> RowTensor:
        return RowTensor(self.indices, values, self._shape)

    def to_dense(self) -> Tensor:
        table = creation.zeros(self._shape, self.values.dtype)
        return scattering.scattered(table, cast(self.indices, dtypes.int64), self.values, "add", "RowTensor")


def coo_to_dense(tensor: COOTensor) -> Tensor:
    """The tensor that a sparse one stands for."""
    return tensor.to_dense()


def csr_to_dense(csr_tensor: CSRTensor) -> Tensor:
    """The matrix that a sparse one stands for."""
    return csr_tensor.to_dense()


def csr_to_coo(tensor: CSRTensor) -> COOTensor:
    """With the indices of rows written out."""
    return tensor.to_coo()


def dense_to_sparse_coo(tensor: Tensor) -> COOTensor:
    """The elements that are not 0, with their places (Int64)."""
    array = concrete(tensor, "dense_to_sparse_coo")
    places = np.argwhere(array)
    return COOTensor(Tensor(places), _values_at(tensor, places.T), array.shape)


def _values_at(tensor: Tensor, places: Any) -> Tensor:
    flat = np.ravel_multi_index(tuple(places), tensor.shape)
    return selection.gather(shapes.ravel(tensor), Tensor.of(np.asarray(flat, np.int64)), 0)


def dense_to_sparse_csr(tensor: Tensor) -> CSRTensor:
    """The elements of a matrix that are not 0, row by row (Int32)."""
    array = concrete(tensor, "dense_to_sparse_csr")
    rows, columns = np.nonzero(array)
    begins = np.searchsorted(rows, np.arange(array.shape[0] + 1)).astype(np.int32)
    return CSRTensor(Tensor(begins), Tensor(columns.astype(np.int32)), _values_at(tensor, (rows, columns)), array.shape)


tensor_method("to_coo")(dense_to_sparse_coo)
tensor_method("to_csr")(dense_to_sparse_csr)
