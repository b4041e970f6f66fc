"""The compile-time data section as a mapping that computes: one parameter at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp

from msc.dialects.ms.structure import ParameterOp
from msc.interp import WeightSource, evaluate_parameter
from msc.interp.arrays import Array


class EvaluatedParameters(Mapping[str, Array]):
    """Parameter to value; a derived one is computed at each look-up and not kept, so that writing them all streams."""

    def __init__(self, module: ModuleOp, weights: WeightSource) -> None:
        self._module = module
        self._weights = weights
        self._names = tuple(op.symbol for op in module.ops if isinstance(op, ParameterOp))

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        return evaluate_parameter(self._module, name, self._weights)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
