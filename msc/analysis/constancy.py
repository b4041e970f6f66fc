"""Which values do not depend on the inputs of a function: parameters, constants, and what is computed of them alone."""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue
from xdsl.traits import Pure

from msc.dialects.ms.base import MsOp
from msc.dialects.open_sizes import depends_on_sizes


def is_constant(value: SSAValue) -> bool:
    """Whether a value depends on parameters and constants alone, none of which is a size that a call decides."""
    return Constancy().of(value)


class Constancy:
    """The answers for many values: each operation is asked once, as long as the IR does not change."""

    def __init__(self) -> None:
        self._known: dict[MsOp, bool] = {}

    def of(self, value: SSAValue) -> bool:
        """Whether a value depends on parameters and constants alone."""
        if not isinstance(value, OpResult) or not isinstance(value.op, MsOp):
            return False
        return self._of_operation(value.op)

    def _of_operation(self, op: MsOp) -> bool:
        """One operand after the other, up to the first that is not constant: most values are not."""
        pending = [] if op in self._known else [op]
        while pending:
            top = pending[-1]
            inner = [v.op for v in top.operands if isinstance(v, OpResult) and isinstance(v.op, MsOp)]
            constant = len(inner) == len(top.operands) and all(self._known.get(o, True) for o in inner)
            unknown = [o for o in inner if o not in self._known] if constant else []
            if unknown:
                pending.append(unknown[0])
                continue
            self._known[top] = constant and top.has_trait(Pure) and not depends_on_sizes(top)
            pending.pop()
        return self._known[op]
