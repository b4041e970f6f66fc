"""One rounding an operator: what f16 and bf16 operators that several operations stand for compute inside, in f32.

    mean = div(reduce_sum(x), n)        is        cast(div(reduce_sum(x) {dtype = f32}, n)) to f16

An operation of its own rounds once as it is: inside of it, floats are f32 already. So operations are written as they
are until one of them reads what another one has rounded. That operand is then computed anew in f32, and so is the
operation, whose result alone is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeGuard, TypeVar

from msc.dialects.element_types import NARROW_FLOATS, element_type
from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.elementwise import BitCastOp, CastOp
from msc.dialects.ms.properties import PlainValue

V = TypeVar("V", bound=Hashable)
"""What stands for a tensor while operations are written."""

Number: TypeAlias = int | float
Properties: TypeAlias = Mapping[str, PlainValue | None]

F32 = element_type("f32")

EXACT = frozenset(
    f"ms.{name}"
    for name in (
        "abs argmax argmin barrier bit_cast broadcast_to ceil clip concat constant depth_to_space dilate equal "
        "expand_dims extract_slice flatten floor gather gather_elements get_parameter global_max_pool greater "
        "greater_equal identity insert_slice is_inf is_nan less less_equal max_pool1d max_pool2d max_pool3d "
        "maximum minimum neg not_equal one_hot pad reduce_max reduce_min relu relu6 reshape resize_nearest reverse "
        "round select sign slice space_to_depth split squeeze stack stop_gradient tile transpose tril triu trunc "
        "windows"
    ).split()
)
"""Operations whose floats are floats of their operands, up to the sign, or whole numbers: there is nothing to round.

The number that a property of theirs holds is a float of the operands' type.
"""


@dataclass(frozen=True)
class _Call(Generic[V]):
    """How a rounded value was computed, where, and which of the results it is."""

    operation: type[MsOp]
    operands: Sequence[V | Number | None]
    properties: Properties
    index: int
    place: Hashable


class RoundedOnce(Generic[V]):
    """Writes the operations that one operator is, so that what it computes of f16 and bf16 is rounded at its end.

    `emit` writes an operation, `dtype_of` names the element type of a value, and `place` says which block operations
    are being written into: what was rounded in another block is taken as it is. Values keep the element types that the
    operations give them; those that nothing reads in the end are left for the caller to remove.
    """

    def __init__(
        self,
        emit: Callable[[type[MsOp], Sequence[V | Number | None], Properties], Sequence[V]],
        dtype_of: Callable[[V], str],
        place: Callable[[], Hashable],
    ) -> None:
        self._emit, self._dtype_of, self._place = emit, dtype_of, place
        self._calls: dict[V, _Call[V]] = {}
        self._f32: dict[tuple[V, Hashable], V] = {}

    def __call__(
        self, operation: type[MsOp], operands: Sequence[V | Number | None], properties: Properties
    ) -> Sequence[V]:
        """The results of an operation. Operands that are f16 or bf16 beside f32 are converted to that."""
        values = _tensors(operands)
        if issubclass(operation, CastOp):
            return [self._cast(values[0], properties)]
        dtypes = [self._dtype_of(value) for value in values]
        narrow = next((dtype for dtype in dtypes if dtype in NARROW_FLOATS), None)
        if narrow is None or operation is BitCastOp:
            return self._emit(operation, operands, properties)
        if "f32" in dtypes:
            return self._in_f32(operation, operands, properties)
        if not any(map(self._is_rounded, values)):
            return self._remembered(operation, operands, properties)
        wide = self._in_f32(operation, operands, properties)
        return wide if properties.get("dtype") == F32 else [self._rounded(value, narrow) for value in wide]

    def _cast(self, value: V, properties: Properties) -> V:
        source = self._widened(value) if self._is_rounded(value) else value
        if properties["dtype"] == element_type(self._dtype_of(source)):
            return source
        return self._remembered(CastOp, (source,), properties)[0]

    def _remembered(
        self, operation: type[MsOp], operands: Sequence[V | Number | None], properties: Properties
    ) -> Sequence[V]:
        results = self._emit(operation, operands, properties)
        if operation.name not in EXACT:
            for index, value in enumerate(results):
                if self._dtype_of(value) in NARROW_FLOATS:
                    self._calls[value] = _Call(operation, operands, properties, index, self._place())
        return results

    def _is_rounded(self, value: V) -> bool:
        """Whether a value was rounded here, so that there is a form of it with more digits."""
        call = self._calls.get(value)
        return call is not None and call.place == self._place()

    def _rounded(self, value: V, dtype: str) -> V:
        """An f32 value in the element type of the operator; others, as those of comparisons, are what they are."""
        if self._dtype_of(value) != "f32":
            return value
        return self._remembered(CastOp, (value,), {"dtype": element_type(dtype)})[0]

    def _in_f32(
        self, operation: type[MsOp], operands: Sequence[V | Number | None], properties: Properties
    ) -> Sequence[V]:
        if issubclass(operation, AccumulatingOp) and all(map(self._is_given, _tensors(operands))):
            return self._emit(operation, operands, {**properties, "dtype": F32})
        wide = [self._widened(v) if _is_tensor(v) else v for v in operands]
        return self._emit(operation, wide, properties)

    def _is_given(self, value: V) -> bool:
        """Whether a value is a narrow float that came in rounded."""
        return self._dtype_of(value) in NARROW_FLOATS and not self._is_rounded(value)

    def _widened(self, value: V) -> V:
        """A value in f32, not rounded if it was here; itself if it is no narrow float."""
        if self._dtype_of(value) not in NARROW_FLOATS:
            return value
        key = (value, self._place())
        if key not in self._f32:
            self._f32[key] = self._anew(self._calls[value]) if self._is_rounded(value) else self._converted(value)
        return self._f32[key]

    def _anew(self, call: _Call[V]) -> V:
        if not issubclass(call.operation, CastOp):
            return self._in_f32(call.operation, call.operands, call.properties)[call.index]
        (source,) = _tensors(call.operands)
        return source if self._dtype_of(source) == "f32" else self._converted(source)

    def _converted(self, value: V) -> V:
        return self._emit(CastOp, (value,), {"dtype": F32})[0]


def _is_tensor(operand: V | Number | None) -> TypeGuard[V]:
    return operand is not None and not isinstance(operand, int | float)


def _tensors(operands: Sequence[V | Number | None]) -> list[V]:
    return [operand for operand in operands if _is_tensor(operand)]
