"""The barrier: an order of computation that the values themselves do not ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import TensorOp


@irdl_op_definition
class BarrierOp(TensorOp):
    """`x` itself, available once `after` has been computed; `after` is a tensor of any type, which is not read.

    What is computed of the result is not computed before `after`, and not merged with the same computation of `x`:
    recomputation of activations depends on it. `cluster-kernels` orders the kernels by it, `erase-barriers` removes it,
    and nothing of it runs. XLA's optimization-barrier with a token.
    """

    name = "ms.barrier"
    EXAMPLE: ClassVar[str] = "2x3xT 4xT"

    x = operand_def(TensorType)
    after = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (self.tensor(0),)
