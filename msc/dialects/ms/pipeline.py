"""Which pass of a pipeline an operation belongs to: forward or backward, of a micro-batch, on a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from msc.dialects.ms.attributes import MS_PASS


@dataclass(frozen=True)
class PipelinePass:
    """As `ms.pass = "backward 2 on 1"`: the backward pass of micro-batch 2 on stage 1."""

    backward: bool
    micro: int
    stage: int

    @classmethod
    def of(cls, op: Operation) -> Self | None:
        """The pass that an operation belongs to, if it says one."""
        text = op.attributes.get(MS_PASS)
        if not isinstance(text, StringAttr):
            return None
        direction, micro, _, stage = text.data.split()
        return cls(direction == "backward", int(micro), int(stage))

    def mark(self, op: Operation) -> None:
        """Have an operation say it, if it says none."""
        op.attributes.setdefault(
            MS_PASS, StringAttr(f"{'backward' if self.backward else 'forward'} {self.micro} on {self.stage}")
        )


def mark_gradient(op: Operation, of: Operation) -> None:
    """Have an operation of a gradient belong to the backward pass of the one that it differentiates."""
    found = PipelinePass.of(of)
    if found is not None:
        replace(found, backward=True).mark(op)


def follow(op: Operation, of: Operation) -> None:
    """Have an operation belong to the pass of another one."""
    found = PipelinePass.of(of)
    if found is not None:
        found.mark(op)
