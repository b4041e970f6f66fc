"""Writes a `davinci` kernel: loops, instructions and flags, over index expressions that know their values."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from msc.dialects import davinci
from msc.dialects.davinci.kernels import memory_of
from msc.dialects.loop import ForOp
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.naming import valid_hint
from msc.targets.davinci import DavinciTarget
from msc.targets.davinci_isa import DTYPES, Pipe, Space

_O = TypeVar("_O", bound=Operation)

Expr = AffineExpr | int
"""An index: dimension k of an expression is the builder's k-th value."""


@dataclass(frozen=True)
class Buffer:
    """A buffer of the kernel that is written."""

    value: SSAValue
    dtype: str
    elements: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * DTYPES[self.dtype]


def expression(value: Expr) -> AffineExpr:
    """An index as an expression."""
    return AffineExpr.constant(value) if isinstance(value, int) else value


def up(value: Expr, multiple: int) -> Expr:
    """An index rounded up to a multiple."""
    if isinstance(value, int):
        return -(-value // multiple) * multiple
    return (value + (multiple - 1)) // multiple * multiple


class KernelBuilder:
    """The kernel as far as it is written; operations go to the end of the innermost open loop."""

    def __init__(self, name: str, target: DavinciTarget, kind: str, blocks: int, arguments: Sequence[tuple[str, int]]):
        self.target = target
        types = [davinci.BufferType.of(Space.gm, dtype, elements) for dtype, elements in arguments]
        self._body = Region(Block(arg_types=types))
        self._open = [self._body.block]
        self._values: list[SSAValue] = []
        self._taken: dict[Space, int] = {}
        self._name, self._kind, self._blocks = name, kind, blocks
        self.arguments = [
            Buffer(value, dtype, elements)
            for value, (dtype, elements) in zip(self._body.block.args, arguments, strict=True)
        ]

    def finish(self) -> davinci.DavinciKernelOp:
        """The kernel."""
        return davinci.DavinciKernelOp(self._name, self._kind, self._blocks, self._body, self.target.name)

    def name_arguments(self, *names: str) -> None:
        """The names that the text shows."""
        for argument, name in zip(self.arguments, names, strict=True):
            argument.value.name_hint = valid_hint(name)

    def alloc(self, space: Space, dtype: str, elements: int, name: str = "", padding: int = 0) -> Buffer:
        """A buffer behind those that the memory has. Raises MSC1021 when it does not fit."""
        least, size = memory_of(self.target, space)
        start = -(-self._taken.get(space, 0) // least) * least + padding
        type_ = davinci.BufferType.of(space, dtype, elements)
        if start + type_.bytes > size:
            message = f"the buffers in {space.name} need {start + type_.bytes} bytes; {self.target.name} has {size}"
            raise MscError(Diagnostic("MSC1021", message, help="use smaller tiles or fewer buffers"))
        self._taken[space] = start + type_.bytes
        op = self._entry(davinci.AllocOp(start, type_))
        op.buffer.name_hint = valid_hint(name or None)
        return Buffer(op.buffer, dtype, elements)

    def alloc_at(self, space: Space, dtype: str, elements: int, address: int, name: str = "") -> Buffer:
        """A buffer in the place of others that are there already."""
        op = self._entry(davinci.AllocOp(address, davinci.BufferType.of(space, dtype, elements), overlapping=True))
        op.buffer.name_hint = valid_hint(name or None)
        return Buffer(op.buffer, dtype, elements)

    def taken(self, space: Space) -> int:
        """The bytes of a memory that have buffers."""
        return self._taken.get(space, 0)

    def emit(self, name: str, *operands: tuple[Buffer, Expr], scalar: float | None = None, **parameters: Expr) -> None:
        """An instruction on buffers with offsets in elements."""
        offsets = [expression(offset) for _, offset in operands]
        numbers = {key: expression(value) for key, value in parameters.items()}
        used, mapped = self._compress([*offsets, *numbers.values()])
        places = [(buffer.value, e) for (buffer, _), e in zip(operands, mapped, strict=False)]
        named = dict(zip(numbers, mapped[len(offsets) :], strict=True))
        self._append(davinci.queue_op(name, places, used, scalar, **named))

    def set_flag(self, source: Pipe, target: Pipe, event: Expr) -> None:
        """`source` tells `target` that its work so far has ended."""
        used, [mapped] = self._compress([expression(event)])
        self._append(davinci.SetFlagOp(source, target, AffineMap(len(used), 0, (mapped,)), used))

    def wait_flag(self, source: Pipe, target: Pipe, event: Expr) -> None:
        """`target` waits for what `source` told."""
        used, [mapped] = self._compress([expression(event)])
        self._append(davinci.WaitFlagOp(source, target, AffineMap(len(used), 0, (mapped,)), used))

    def barrier(self, pipe: Pipe) -> None:
        """A pipe waits for its own work."""
        self._append(davinci.PipeBarrierOp(pipe))

    def tell_cores(self, pipe: Pipe, flag: int) -> None:
        """The other cores of a block learn that the work of a pipe has ended."""
        self._append(davinci.CrossCoreSyncOp(pipe, 2, flag))

    def wait_for_cores(self, flag: int) -> None:
        """The scalar unit waits for what the other cores of a block told."""
        self._append(davinci.WaitFlagDevOp(2, flag))

    def block_index(self) -> AffineExpr:
        """Which block runs."""
        return self._index(self._append(davinci.BlockIdxOp()).result, "block")

    def sub_block(self) -> AffineExpr:
        """Which of a block's vector cores runs."""
        return self._index(self._append(davinci.SubBlockOp()).result, "sub_block")

    def minimum(self, *options: Expr, name: str = "n") -> Expr:
        """The least of some indices."""
        exprs = [expression(option) for option in options]
        if all(isinstance(e, AffineConstantExpr) for e in exprs):
            return min(e.value for e in exprs if isinstance(e, AffineConstantExpr))
        used, mapped = self._compress(exprs)
        op = self._append(davinci.MinOp(AffineMapAttr(AffineMap(len(used), 0, tuple(mapped))), used))
        return self._index(op.result, name)

    def load_index(self, indices: Buffer, at: Expr, below: int, words: int = 1) -> AffineExpr:
        """An index that the scalar unit loads: negative ones count from the end, and all become 0 to `below` - 1."""
        used, [mapped] = self._compress([expression(at)])
        op = self._append(davinci.LoadIndexOp(indices.value, AffineMap(len(used), 0, (mapped,)), below, used, words))
        return self._index(op.result, "chosen")

    @contextmanager
    def loop(self, lower: Expr, upper: Expr, step: int = 1, name: str = "i") -> Generator[AffineExpr]:
        """A loop; gives its index."""
        used, mapped = self._compress([expression(lower), expression(upper)])
        maps = [AffineMap(len(used), 0, (e,)) for e in mapped]
        op = self._append(ForOp(maps[0], maps[1], used, step, body=Region(Block(arg_types=[IndexType()]))))
        self._open.append(op.body.block)
        yield self._index(op.variable, name)
        self._open.pop()

    @contextmanager
    def section(self, kind: str) -> Generator[None]:
        """What only cube cores run, or only vector cores."""
        op = self._append(davinci.SectionOp(kind))
        self._open.append(op.body.block)
        yield
        self._open.pop()

    @contextmanager
    def prologue(self) -> Generator[None]:
        """What comes before all that is written so far. No loop may be open."""
        block, written = self._body.block, list(self._body.block.ops)
        assert self._open == [block]
        for op in written:
            op.detach()
        yield
        first = next((op for op in block.ops if not isinstance(op, davinci.AllocOp)), None)
        for op in written:
            if isinstance(op, davinci.AllocOp) and first is not None:
                block.insert_op_before(op, first)
            else:
                block.add_op(op)

    def _index(self, value: SSAValue, name: str) -> AffineExpr:
        value.name_hint = valid_hint(name)
        self._values.append(value)
        return AffineExpr.dimension(len(self._values) - 1)

    def _entry(self, op: davinci.AllocOp) -> davinci.AllocOp:
        """At the start of the kernel: a buffer is there from then on."""
        first = next((o for o in self._body.block.ops if not isinstance(o, davinci.AllocOp)), None)
        if first is None:
            self._body.block.add_op(op)
        else:
            self._body.block.insert_op_before(op, first)
        return op

    def _append(self, op: _O) -> _O:
        self._open[-1].add_op(op)
        return op

    def _compress(self, exprs: Sequence[AffineExpr]) -> tuple[list[SSAValue], list[AffineExpr]]:
        """The values that expressions use, and the expressions over just these."""
        used = sorted({part.position for e in exprs for part in e.dfs() if isinstance(part, AffineDimExpr)})
        places = [AffineExpr.dimension(used.index(k) if k in used else 0) for k in range(len(self._values))]
        return [self._values[k] for k in used], [e.replace_dims_and_symbols(places, []) for e in exprs]
