"""Names of kernel arguments, after the tensors and weights of the model, for readers of the C."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from msc.dialects.gk import KernelOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp


class ArgumentNames:
    """The names of kernels' inputs and outputs in a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._read: dict[str, set[str]] = {
            op.symbol: {inner.symbol for inner in op.walk() if isinstance(inner, GetParameterOp)}
            for op in module.ops
            if isinstance(op, ParameterOp)
        }

    def of(self, kernel: KernelOp) -> tuple[str | None, ...]:
        """A name, where there is one, for each input and then each output."""
        pairs = zip(kernel.inputs, kernel.body.block.args, strict=True)
        return (*(self._input(outer, inner) for outer, inner in pairs), *(r.name_hint for r in kernel.results))

    def _input(self, outer: SSAValue, inner: SSAValue) -> str | None:
        if isinstance(outer.owner, GetParameterOp):
            return self._weight(outer.owner.symbol)
        return inner.name_hint

    def _weight(self, symbol: str) -> str:
        """The weight of the model that a derived one is another form of; its own name if it is made of several."""
        while len(sources := self._read.get(symbol, set())) == 1:
            (symbol,) = sources
        return symbol


def shared_name(names: Sequence[str | None]) -> str | None:
    """A name for an argument that kernels call differently: `fc1.weight` and `fc2.weight` are both a `weight`.

    None where they share none, or a number alone, such as `down.1` and `up.1`.
    """
    parts = {tuple((name or "").split(".")) for name in names}
    if len(parts) == 1:
        return names[0]
    last = {each[-1] for each in parts}
    name = last.pop() if len(last) == 1 else ""
    return name if name and not name[0].isdigit() else None
