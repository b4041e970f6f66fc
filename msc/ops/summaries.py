"""Summary operators: what a network is given is recorded by `msc.train.SummaryRecord`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.summaries import summarise
from msc.frontend.tensor import Tensor
from msc.ops.primitive import operator
from msc.support.wording import a

__all__ = ["HistogramSummary", "ImageSummary", "ScalarSummary", "TensorSummary"]


def _summary(kind: str, ranks: tuple[int, ...] | None) -> Callable[[Any, Any], None]:
    def given(name: Any, value: Any) -> None:
        operator_name = f"{kind.capitalize()}Summary"
        if not isinstance(name, str) or not name:
            raise ApiTypeError("MSC0811", f"{operator_name}: name is {name!r}; it takes a string")
        if not isinstance(value, Tensor):
            raise ApiTypeError("MSC0811", f"{operator_name}: value is {a(type(value).__name__)}, not a Tensor")
        if ranks is not None and value.ndim not in ranks and not (kind == "scalar" and value.shape == (1,)):
            raise ApiValueError("MSC0811", f"{operator_name}: '{name}' has shape {value.shape}")
        summarise(kind, name, value)

    return given


ScalarSummary = operator("ScalarSummary", _summary("scalar", (0,)))
TensorSummary = operator("TensorSummary", _summary("tensor", None))
HistogramSummary = operator("HistogramSummary", _summary("histogram", None))
ImageSummary = operator("ImageSummary", _summary("image", (4,)))
