"""`Metric`: what is measured over all batches of an evaluation."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msc.frontend.boundary import Published
from msc.frontend.errors import ApiError, ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor, concrete
from msc.support.argument_values import described
from msc.support.arrays import Array
from msc.support.wording import a


class Metric(Published):
    """Base: `clear()` begins, `update(*outputs)` adds a batch, `eval()` gives the result."""

    def __init__(self) -> None:
        self._indexes: tuple[int, ...] | None = None
        self.clear()

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def indexes(self) -> tuple[int, ...] | None:
        """Which outputs of the network `update` is given, if `set_indexes` said it."""
        return self._indexes

    def set_indexes(self, indexes: Any) -> Metric:
        """Have `update` be given these outputs of the network, in this order."""
        if not isinstance(indexes, list | tuple) or not all(isinstance(k, int) and k >= 0 for k in indexes):
            raise ApiTypeError("MSC0877", f"{self.name}: indexes is {described(indexes)}; it takes numbers of outputs")
        self._indexes = tuple(indexes)
        return self

    def clear(self) -> None:
        """Forget all batches."""
        raise NotImplementedError

    def update(self, *inputs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def eval(self) -> Any:
        """The result. Raises MSC0877 before the first batch."""
        raise NotImplementedError

    # What subclasses use.

    def arrays(self, inputs: Sequence[Any], count: int) -> list[Array]:
        """The arguments of `update` as arrays. Raises MSC0877."""
        if self._indexes is not None:
            if max(self._indexes, default=-1) >= len(inputs):
                raise ApiValueError("MSC0877", f"{self.name}: there are {len(inputs)} outputs, not {self._indexes}")
            inputs = [inputs[k] for k in self._indexes]
        if len(inputs) != count:
            raise ApiValueError("MSC0877", f"{self.name}: update takes {count} arrays, not {len(inputs)}")
        return [self._array(value) for value in inputs]

    def _convert_data(self, data: Any) -> Array:
        """A tensor, a list or an array as an array, for metrics written for MindSpore."""
        return self._array(data)

    def _array(self, value: Any) -> Array:
        array = concrete(value, self.name) if isinstance(value, Tensor) else np.asarray(value)
        if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
            raise ApiTypeError(
                "MSC0877", f"{self.name}: update takes tensors and arrays, not {a(type(value).__name__)}"
            )
        return array.astype(np.float32) if array.dtype.name in ("bfloat16", "float16") else array

    def wrong(self, message: str) -> ApiError:
        """An error about what this metric was given."""
        return ApiValueError("MSC0877", f"{self.name}: {message}")

    def measured(self, count: float) -> None:
        """Raise MSC0877 if nothing was measured."""
        if count == 0:
            raise self.wrong("there was no batch yet")

    def same_shape(self, outputs: Array, labels: Array) -> None:
        """Raise MSC0877 if predictions and labels differ in shape."""
        if outputs.shape != labels.shape:
            raise self.wrong(f"predictions have shape {list(outputs.shape)}, labels {list(labels.shape)}")

    def classes(self, outputs: Array, labels: Array) -> tuple[Array, int]:
        """The labels as classes [n], of one-hot rows too, and the number of classes of predictions [n, classes]."""
        if outputs.ndim != 2:
            raise self.wrong(f"predictions have shape {list(outputs.shape)}, not [examples, classes]")
        if labels.shape == outputs.shape:
            labels = labels.argmax(1)
        if labels.shape != outputs.shape[:1]:
            raise self.wrong(f"predictions have shape {list(outputs.shape)}, labels {list(labels.shape)}")
        if labels.dtype.kind == "f" and (labels != labels.astype(np.int64)).any():
            raise self.wrong("labels are classes; these are no integers")
        found = labels.astype(np.int64)
        if found.size and not (found.min() >= 0 and found.max() < outputs.shape[1]):
            raise self.wrong(f"a label is {found.max()}, and there are {outputs.shape[1]} classes")
        return found, outputs.shape[1]
