"""Activations computed again for the backward pass, instead of stored for it.

The operations of a part of a graph are copied where the gradients of its outputs have arrived. The copies read what the
part reads from outside through barriers on such a gradient, so that they run then, and are not the same values as the
first ones; the gradient goes back through the copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakSet

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import ConstantLike

from msc.dialects.ms.barrier import BarrierOp
from msc.dialects.ms.structure import GetParameterOp
from msc.graph.autodiff.again import copied
from msc.graph.autodiff.reverse import CUSTOM, CustomGradient, Reverse, activity, uses

STORED: WeakSet[Operation] = WeakSet()
"""Operations whose results are stored, although the part that they stand in is computed again."""


@dataclass(frozen=True)
class RecomputedPart:
    """Operations that are computed again, in order, and the values of them that the rest of the graph reads."""

    ops: Sequence[Operation]
    outputs: Sequence[SSAValue]

    @property
    def inputs(self) -> list[SSAValue]:
        """What the operations read from outside, each value once, in the order of use."""
        inside = {v for op in self.ops for inner in op.walk() for v in inner.results}
        inside |= {a for op in self.ops for inner in op.walk() for r in inner.regions for b in r.blocks for a in b.args}
        return [v for v in dict.fromkeys(v for op in self.ops for v in uses(op)) if v not in inside]

    def write(self, reverse: Reverse, markers: Sequence[SSAValue], standing: Mapping[SSAValue, SSAValue]) -> None:
        """Copy the operations and walk back through the copies.

        `markers` are the outputs as the graph reads them, with their gradients; `standing` says which values stand
        for those of the part, where the part itself has been copied.
        """
        arrived = {m: g for m in markers if (g := reverse.gradients.get(standing.get(m, m))) is not None}
        if not arrived:
            return
        token, emit = next(reversed(arrived.values())), reverse.emit
        outer = {v: standing.get(v, v) for v in self.inputs}
        mapped = {v: emit(BarrierOp, w, token) if _is_held_back(w) else w for v, w in outer.items()}
        made = copied(self.ops, mapped, emit.insert)
        active = {mapped[v] for v, w in outer.items() if w in reverse.active}
        inner = Reverse(emit, activity(made, active))
        for marker, output in zip(markers, self.outputs, strict=True):
            inner.add(mapped.get(output, standing.get(output, output)), arrived.get(marker))
        inner.run(made)
        for value, original in outer.items():
            reverse.add(original, inner.gradients.get(mapped[value]))


def recompute(ops: Sequence[Operation], outputs: Sequence[SSAValue], markers: Sequence[Operation]) -> None:
    """Note that operations are computed again for the gradient; `markers` copy the outputs that have one, in order."""
    part = RecomputedPart([op for op in ops if not isinstance(op, GetParameterOp) and op not in STORED], outputs)
    results = [marker.results[0] for marker in markers]
    custom = CustomGradient(
        part.inputs, markers[-1], lambda reverse, standing: part.write(reverse, results, standing), through_emitter=True
    )
    CUSTOM.update((marker, custom) for marker in markers)


def _is_held_back(value: SSAValue) -> bool:
    """Whether a barrier stands before a value; constants and parameters are no activations."""
    owner = value.owner
    is_weight = isinstance(owner, GetParameterOp) or (isinstance(owner, Operation) and owner.has_trait(ConstantLike))
    return isinstance(value.type, TensorType) and not is_weight
