"""The compile-time data section as a mapping that computes: one parameter at a time is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp

from msc.dialects.arrays import Array
from msc.interp import Evaluator, Symbols, WeightSource


class EvaluatedParameters(Mapping[str, Array]):
    """Parameter to value; a derived one is computed at each look-up and not kept, so that writing them all streams."""

    def __init__(self, module: ModuleOp, weights: WeightSource) -> None:
        self._symbols = Symbols.of(module)
        self._weights = weights

    def __getitem__(self, name: str) -> Array:
        if name not in self._symbols.parameters:
            raise KeyError(name)
        return Evaluator(self._symbols, self._weights, None).parameter(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._symbols.parameters)

    def __len__(self) -> int:
        return len(self._symbols.parameters)
