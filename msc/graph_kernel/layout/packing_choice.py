"""How products read right operands that calls compute: as they lie, packed in front, or packed inside, by cycles.

The cost model predicts how long a kernel takes, with the kernels that only move the operand in front of it, for each of
these places on one thread, with the schedules that the kernels would get. It predicts too little for operands that L2
does not hold, for rows far apart that are read as they lie, and for few rows that read a transposed operand: there the
first guess decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, SSAValue

from msc.analysis.constancy import is_constant
from msc.analysis.flops import flops
from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.cost.access import pieces
from msc.cost.register_tiles import long_row, micro_panel_widths
from msc.dialects.element_types import BYTES
from msc.dialects.gk import KernelOp
from msc.dialects.ms.linear import MatrixProductOp
from msc.graph_kernel.forms import GAIN, given_for, module_of
from msc.graph_kernel.kernel_results import add_reason
from msc.graph_kernel.layout.stored_inputs import movers_before
from msc.schedule.kernel_cycles import KernelCycles
from msc.targets.machine import Machine

WASTE = 1.125
"""Times its even share of panels that the busiest thread may have."""


class PackingPlace(Enum):
    """Where the right operand of a product is packed."""

    NOWHERE = "as it lies"
    IN_FRONT = "packed by a kernel in front"
    INSIDE = "packed a panel at a time"


@dataclass(frozen=True)
class PackingChoice:
    """The choice of places, in a network whose constants have so many bytes; `pack` packs the operand of a kernel."""

    cycles: KernelCycles
    between: int
    pack: Callable[[KernelOp, PackingPlace], None]

    def places(self, guess: Mapping[KernelOp, PackingPlace]) -> dict[KernelOp, PackingPlace]:
        """The places with the fewest cycles for kernels of one product: the first guess, but where others gain."""
        distinct = {_key(kernel, place): (kernel, place) for kernel, place in reversed(list(guess.items()))}
        lines = self.cycles.loops.choices(self._best, list(distinct.values()))
        found, chosen = dict(zip(distinct, lines, strict=True)), dict[KernelOp, PackingPlace]()
        for kernel, place in guess.items():
            name, reason = found[_key(kernel, place)]
            chosen[kernel] = PackingPlace[name]
            add_reason(kernel, reason)
        return chosen

    def _best(self, job: tuple[KernelOp, PackingPlace]) -> list[str]:
        """The name of the fastest place, and the reason."""
        kernel, guess = job
        guessed = self._cycles(kernel, guess)
        cycles = {guess: guessed}
        if GAIN * guessed > _least(kernel, self.cycles):  # else no place can gain as much
            cycles |= {
                place: self._cycles(kernel, place) for place in _others(kernel, guess, self.cycles.target.machine)
            }
        fastest = min(cycles, key=lambda place: cycles[place])
        best = fastest if cycles[fastest] < GAIN * guessed else guess
        figures = (f"{cycles[place]:.0f} if {place.value}" for place in cycles if place is not best)
        return [best.name, ", ".join([f"right operand {best.value}: {cycles[best]:.0f} cycles predicted", *figures])]

    def _cycles(self, kernel: KernelOp, place: PackingPlace) -> float:
        """Of a kernel with its operand in a place."""
        module = _module(kernel)
        self.pack(kernels_in(module)[-1], place)
        return self.cycles.of(kernels_in(module), self.between)


def product_of(kernel: KernelOp) -> MatrixProductOp | None:
    """The product of a kernel that has one."""
    found = [op for op in kernel.body.block.ops if isinstance(op, MatrixProductOp)]
    return found[0] if len(found) == 1 else None


def is_compared(product: MatrixProductOp, machine: Machine) -> bool:
    """Whether the model predicts well how a product reads its right operand."""
    size = prod(product.shape(1)) * BYTES[product.dtype(1)]
    enough = not product.flag("transpose_b") or product.result_shape()[-2] >= machine.code.packed_rows
    return enough and size <= machine.l2 // 2


def _others(kernel: KernelOp, guess: PackingPlace, machine: Machine) -> list[PackingPlace]:
    """The places that are compared with the first guess; all cores must be able to share panels packed inside evenly.

    They decide how columns at the end are summed, so the number of threads is not asked: it must change no bit.
    """
    product = product_of(kernel)
    assert product is not None
    *batch, rows, columns = product.shape(1)
    transposed, size = product.flag("transpose_b"), BYTES[product.dtype(1)]
    far = not transposed and columns * size >= long_row(machine)
    panels = prod(batch) * pieces(rows if transposed else columns, micro_panel_widths(machine, size)[0])
    even = pieces(panels, machine.cores) * machine.cores <= WASTE * panels
    left_out = {guess, *([PackingPlace.NOWHERE] if far else []), *([] if even else [PackingPlace.INSIDE])}
    return [place for place in PackingPlace if place not in left_out]


def _right(kernel: KernelOp) -> SSAValue:
    """What a kernel reads as the right operand of its product."""
    product = product_of(kernel)
    right = None if product is None else product.operands[1]
    assert isinstance(right, BlockArgument)
    return kernel.inputs[right.index]


def _least(kernel: KernelOp, cycles: KernelCycles) -> float:
    """The cycles that the arithmetic of a kernel takes at least."""
    product, machine = product_of(kernel), cycles.target.machine
    assert product is not None
    size = BYTES[product.dtype(0)]
    terms = max(
        (u.shape.k / u.cycles for u in machine.units if u.in_registers and product.dtype(0) in u.a.types), default=1
    )
    return flops(kernel) / (machine.flops * max(1, terms) * max(1, BYTES["f32"] // size))


def _key(kernel: KernelOp, place: PackingPlace) -> object:
    """What a choice depends on."""
    moved = [kernel_model(op).structure for op in movers_before(_right(kernel)) if isinstance(op, KernelOp)]
    return place, kernel_model(kernel).structure, tuple(moved), tuple(map(is_constant, kernel.inputs))


def _module(kernel: KernelOp) -> ModuleOp:
    """A module for one thread that runs a kernel, and those in front that only move its right operand."""
    movers, block = movers_before(_right(kernel)), Block()
    made = {result for op in movers for result in op.results}
    reads = [value for op in (*movers, kernel) for value in op.operands if value not in made]
    known, ops = given_for(block, reads)
    for op in (*movers, kernel):
        ops.append(op.clone(known))
        known |= zip(op.results, ops[-1].results, strict=True)
    return module_of(block, ops, kernel)
