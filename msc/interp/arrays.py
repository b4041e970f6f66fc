"""The names of `msc.dialects.arrays`, for those who import them from here."""

from msc.dialects.arrays import (
    BFLOAT16,
    Array,
    dense_array,
    dtype_text,
    element_dtype,
    fits,
    is_integer_array,
    numpy_dtype,
    shape_fits,
    tensor_dtype,
    type_text,
)

__all__ = [
    "BFLOAT16",
    "Array",
    "dense_array",
    "dtype_text",
    "element_dtype",
    "fits",
    "is_integer_array",
    "numpy_dtype",
    "shape_fits",
    "tensor_dtype",
    "type_text",
]
