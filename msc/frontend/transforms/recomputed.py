"""Calls whose activations are computed again for the gradient: `Cell.recompute()` and `Primitive.recompute()`."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.dispatch import apply
from msc.frontend.parameter import Parameter
from msc.frontend.reader.session import Session
from msc.frontend.reader.structures import fill
from msc.frontend.tensor import Tensor
from msc.frontend.transforms.custom import operation_of
from msc.frontend.transforms.gradients import is_float, taken_apart
from msc.frontend.transforms.recording import operations_since, recording
from msc.frontend.transforms.tape import Tape
from msc.graph.autodiff.recompute import STORED, recompute


def call_recomputed(run: Callable[[], Any], mode: bool) -> Any:
    """What `run` gives. The operations recorded meanwhile are computed again for a gradient, or stored without `mode`.

    Outside of a graph and of a gradient nothing is recorded, and nothing is stored either.
    """
    builder = INSTALLED.builder
    if not isinstance(builder, Session | Tape):
        return run()
    with recording() as record:
        block, last = record.block, record.block.last_op
        result = run()
        if _block_of(builder) is not block or (last is not None and last.parent is not block):
            return result
        ops = operations_since(record, last)
        if not mode:
            STORED.update(ops)
            return result
        template, outputs = taken_apart(result)
        made = {value for op in ops for value in op.results}
        values = [record.ssa(t) if _may_be_marked(t) else None for t in outputs]
        marked = {v: apply("identity", t) for t, v in zip(outputs, values, strict=True) if v is not None and v in made}
        if marked:
            recompute(ops, list(marked), [operation_of(record, t) for t in marked.values()])
        return fill(template, [t if v is None else marked.get(v, t) for t, v in zip(outputs, values, strict=True)])


def _may_be_marked(tensor: Tensor) -> bool:
    return isinstance(tensor.content, Symbol) and is_float(tensor) and not isinstance(tensor, Parameter)


def _block_of(builder: Session | Tape) -> object:
    return builder.block if isinstance(builder, Tape) else builder.graph.writer.block
