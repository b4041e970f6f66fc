"""What distributions have in common: parameters of the object or of the call, and what follows from others."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnsupportedDunderAll=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from msc import ops
from msc.frontend import dtypes
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Tensor
from msc.nn.cell import Cell

__all__ = ["Distribution"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_EULER = 0.5772156649015329


def as_numbers(value: Any) -> Tensor:
    return ops.cast(value if isinstance(value, Tensor) else Tensor(np.asarray(value, np.float32)), dtypes.float32)


class Distribution(Cell):
    """Base. A kind says `PARAMETERS` and what it has of `_log_prob`, `_cdf`, `_mean`, `_var`, `_mode`, `_entropy`.

    Raises MSC0808 for parameters that are missing, MSC0898 for what a kind does not have.
    """

    PARAMETERS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, given: dict[str, Any], seed: int | None, dtype: Any, name: str) -> None:
        super().__init__()
        self.distribution_name, self.seed, self.dtype = name, seed, dtype
        self._given = {key: None if value is None else as_numbers(value) for key, value in given.items()}
        for key, value in self._given.items():
            setattr(self, f"_{key}_", value)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name."""
        return dict(self._given)

    @property
    def batch_shape(self) -> tuple[int, ...] | None:
        """The shape that the parameters have together."""
        known = [v.shape for v in self._given.values() if v is not None]
        return tuple(np.broadcast_shapes(*known)) if len(known) == len(self._given) else None

    def get_dist_type(self) -> str:
        """The name of the kind."""
        return type(self).__name__

    def get_dist_args(self, *args: Any, **keywords: Any) -> tuple[Any, ...]:
        """The parameters, or those that are given."""
        return tuple(self._arguments(args, keywords))

    def _arguments(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[Tensor]:
        given = dict(zip(self.PARAMETERS, args, strict=False)) | keywords
        found: list[Tensor] = []
        for key in self.PARAMETERS:
            value = given.get(key)
            value = self._given.get(key) if value is None else as_numbers(value)
            if value is None:
                raise ApiTypeError(
                    "MSC0808", f"{type(self).__name__}: {key} is not given", help="to the object or to the call"
                )
            found.append(value)
        return found

    def _own(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any], *values: Any) -> Any:
        function: Callable[..., Any] | None = getattr(self, name, None) if hasattr(type(self), name) else None
        if function is None:
            kind, what = type(self).__name__, name.strip("_")
            raise ApiValueError(
                "MSC0898", f"{kind} has no {what}", help="MindSpore's has none either; sample() estimates it"
            )
        return function(*values, *self._arguments(args, keywords))

    def log_prob(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The log of the chance or density of values."""
        return self._own("_log_prob", args, keywords, as_numbers(value))

    def prob(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The chance or density of values."""
        return ops.exp(self.log_prob(value, *args, **keywords))

    def cdf(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The chance of values up to some."""
        return self._own("_cdf", args, keywords, as_numbers(value))

    def log_cdf(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The log of it."""
        return ops.log(self.cdf(value, *args, **keywords))

    def survival_function(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The chance of values above some."""
        return ops.sub(1.0, self.cdf(value, *args, **keywords))

    def log_survival(self, value: Any, *args: Any, **keywords: Any) -> Tensor:
        """The log of it."""
        return ops.log(self.survival_function(value, *args, **keywords))

    def mean(self, *args: Any, **keywords: Any) -> Tensor:
        """The mean."""
        return self._own("_mean", args, keywords)

    def mode(self, *args: Any, **keywords: Any) -> Tensor:
        """The value of the largest chance."""
        return self._own("_mode", args, keywords)

    def var(self, *args: Any, **keywords: Any) -> Tensor:
        """The variance."""
        return self._own("_var", args, keywords)

    def sd(self, *args: Any, **keywords: Any) -> Tensor:
        """The deviation."""
        return ops.sqrt(self.var(*args, **keywords))

    def entropy(self, *args: Any, **keywords: Any) -> Tensor:
        """The entropy, in nats."""
        return self._own("_entropy", args, keywords)

    def kl_loss(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """The divergence from one of the same kind, whose parameters are given first, then this one's."""
        self._same_kind(dist)
        count = len(self.PARAMETERS)
        values = [*args, *keywords.values()]
        other = [as_numbers(v) for v in values[:count]]
        own = self._arguments(tuple(values[count:]), {})
        function: Any = getattr(self, "_kl", None) if hasattr(type(self), "_kl") else None
        if function is None or len(other) < count:
            raise ApiValueError("MSC0898", f"{type(self).__name__} has no divergence of these parameters")
        return function(*own, *other)

    def cross_entropy(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """The entropy plus the divergence from one of the same kind."""
        count = len(self.PARAMETERS)
        return ops.add(self.entropy(*args[count:]), self.kl_loss(dist, *args, **keywords))

    def _same_kind(self, dist: str) -> None:
        if dist != type(self).__name__:
            raise ApiValueError(
                "MSC0808",
                f"{type(self).__name__}: the other distribution is {dist!r}",
                help=f"{type(self).__name__!r} is known",
            )

    def sample(self, shape: Any = (), *args: Any, **keywords: Any) -> Tensor:
        """Values, in a shape before that of the parameters."""
        found = self._arguments(args, keywords)
        size = (*tuple(shape), *np.broadcast_shapes(*(v.shape for v in found)))
        return ops.cast(getattr(self, "_draw")(size, *found), self.dtype)  # noqa: B009

    def construct(self, name: str, *args: Any, **keywords: Any) -> Any:
        return getattr(self, name)(*args, **keywords)

    def _uniform(self, size: Any) -> Tensor:
        return ops.clamp(ops.rand(size, seed=self.seed or None), 1e-7, 1.0)
