"""Sums and products that may give a wider float than they read: what their accumulators hold, not yet rounded."""

from __future__ import annotations

from msc.dialects.element_types import NARROW_FLOATS
from msc.dialects.ms.base import BasicOp
from msc.dialects.ms.elementwise import named_dtype
from msc.dialects.ms.properties import optional_dtype
from msc.ir.errors import InvalidAttribute
from msc.poly.scalar import Cast, Scalar


class AccumulatingOp(BasicOp):
    """Base: with `{dtype = f32}`, the result of f16 or bf16 operands is the f32 sum or product itself."""

    result_element = optional_dtype()

    def result_type_for(self, dtype: str) -> str:
        """The result's element type for operands of `dtype`. Raises InvalidAttribute."""
        wanted = self.properties.get("dtype")
        if wanted is None:
            return dtype
        name = named_dtype(self.name, wanted)
        if name != dtype and (name != "f32" or dtype not in NARROW_FLOATS):
            raise InvalidAttribute(f"{self.name}: dtype is {name}; of {dtype} the result is {_choices(dtype)}")
        return name

    def term(self, body: Scalar) -> Scalar:
        """What is accumulated, in the result's element type."""
        dtype = self.result_type_for(body.dtype)
        return body if dtype == body.dtype else Cast(body, dtype)


def _choices(dtype: str) -> str:
    return f"{dtype} or f32" if dtype in NARROW_FLOATS else dtype
