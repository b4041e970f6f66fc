"""Sums and products that may give a wider type than they read: what their accumulators hold, not yet rounded."""

from __future__ import annotations

from typing import ClassVar

from msc.dialects.element_types import NARROW_FLOATS
from msc.dialects.ms.base import BasicTensorOp
from msc.dialects.ms.elementwise import named_dtype
from msc.dialects.ms.properties import optional_dtype
from msc.ir.errors import InvalidAttribute
from msc.poly.scalar import Apply, Cast, Scalar, apply

NARROW_INTEGERS = ("i8", "ui8")
"""Integers whose products may be summed up in i32."""


class AccumulatingOp(BasicTensorOp):
    """Base: with `{dtype = f32}`, the result of f16 or bf16 operands is the f32 sum or product itself.

    With `{dtype = i32}`, matrix products and convolutions of i8 or ui8, or of one by the other, multiply and sum up in
    i32 (`WIDENS_INTEGERS`).
    """

    WIDENS_INTEGERS: ClassVar[bool] = False
    result_element = optional_dtype()

    def expect_one_dtype(self, family: str = "any") -> str:
        """The element type of the operands; of bytes with and without sign, that of the first."""
        if self.WIDENS_INTEGERS and self.properties.get("dtype") is not None and len(self.operands) == 2:
            wide = named_dtype(self.name, self.plain("dtype")) == "i32"
            if wide and all(self.dtype(k) in NARROW_INTEGERS for k in (0, 1)):
                return self.dtype(0)
        return super().expect_one_dtype(family)

    def result_type_for(self, dtype: str) -> str:
        """The result's element type for operands of `dtype`. Raises InvalidAttribute."""
        wanted = self.properties.get("dtype")
        if wanted is None:
            return dtype
        name = named_dtype(self.name, wanted)
        wide = self._wide(dtype)
        if name not in (dtype, wide):
            choices = dtype if wide is None else f"{dtype} or {wide}"
            raise InvalidAttribute(f"{self.name}: dtype is {name}; of {dtype} the result is {choices}")
        return name

    def _wide(self, dtype: str) -> str | None:
        """The wider type that the result of operands of `dtype` may have."""
        if dtype in NARROW_FLOATS:
            return "f32"
        return "i32" if self.WIDENS_INTEGERS and dtype in NARROW_INTEGERS else None

    def term(self, body: Scalar) -> Scalar:
        """What is accumulated, in the result's element type."""
        dtype = self.result_type_for(body.dtype)
        if dtype == body.dtype:
            return body
        if dtype == "i32" and isinstance(body, Apply):  # a product of bytes would wrap around
            return apply(body.op, *(Cast(arg, dtype) for arg in body.args))
        return Cast(body, dtype)
