"""What is known of each kernel of a module at the kernel stage, for reports and explanations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.utils.hints import isa

from msc.analysis.bytes import bytes_read, bytes_written
from msc.analysis.flops import flops
from msc.analysis.repetition import times_run
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_PATTERN, GK_REASONS
from msc.ir.locations import source_location
from msc.support.diagnostics import Location


@dataclass(frozen=True)
class KernelSummary:
    """A kernel: what it is called, where it comes from, what it costs at least, and what was decided about it."""

    label: str
    pattern: str
    operations: tuple[str, ...]
    location: Location | None
    flops: int
    bytes_read: int
    bytes_written: int
    reasons: tuple[str, ...]
    runs: int | None = 1
    """How often a call of the model runs it; None if that is computed."""

    @property
    def intensity(self) -> float:
        """Arithmetic operations a byte that must be moved: what decides whether memory or arithmetic is the limit."""
        return self.flops / max(self.bytes_read + self.bytes_written, 1)


def kernels_in(op: Operation) -> list[KernelOp]:
    """The kernels of a module or function at all depths, in the order of the text."""
    return [kernel for kernel in op.walk() if isinstance(kernel, KernelOp)]


def kernel_summaries(module: ModuleOp) -> list[KernelSummary]:
    """All kernels of a module of static shapes, in the order of the text."""
    return [summary_of(kernel) for kernel in kernels_in(module)]


def blocks_outside_kernels(function: FuncOp) -> list[Block]:
    """The blocks of a function at all depths, those of its kernels excepted; outer ones first."""
    owners = [op for op in function.walk() if not isinstance(op, KernelOp)]
    return [block for op in owners for region in op.regions for block in region.blocks]


def summary_of(kernel: KernelOp) -> KernelSummary:
    """What is known of a kernel."""
    return KernelSummary(
        kernel.label.data,
        _text(kernel.attributes.get(GK_PATTERN)),
        tuple(op.name for op in _computing(kernel)),
        source_location(kernel),
        flops(kernel),
        bytes_read(kernel),
        bytes_written(kernel),
        _texts(kernel.attributes.get(GK_REASONS)),
        times_run(kernel),
    )


def _computing(kernel: KernelOp) -> list[Operation]:
    return [op for op in kernel.body.block.ops if op.name not in ("gk.materialize", "gk.yield", "ms.constant")]


def _text(attribute: object) -> str:
    return attribute.data if isinstance(attribute, StringAttr) else ""


def _texts(attribute: object) -> tuple[str, ...]:
    return tuple(map(_text, attribute)) if isa(attribute, ArrayAttr[Attribute]) else ()
