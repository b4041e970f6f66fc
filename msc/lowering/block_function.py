"""One function of kernels that hand over blocks: their outermost loops as one, a block of each result at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, MemRefType, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.hints import isa

from msc.dialects.loop import ForOp, LoopKind
from msc.dialects.loop.accesses import AccessOp
from msc.ir.typed import memref_type, static_shape
from msc.lowering.buffer_types import root_buffer
from msc.lowering.inlined import Inlined, NotOutlined, Target, note_kernels
from msc.lowering.kernel_signature import IN_PLACE, OUTPUTS, TEMPORARIES, KernelSignature

BLOCKS = "loop.blocks"
"""On a call: how many axes of its result, in front, number blocks that the next call reads one after the other."""


def blocks_of(call: func.CallOp) -> int:
    """How many axes of a call's result number blocks; 0 for an ordinary one."""
    count = call.attributes.get(BLOCKS)
    return count.value.data if isa(count, IntegerAttr) else 0


@dataclass(frozen=True)
class Calls:
    """A chain of calls, each of which hands its one result to the next."""

    chain: Sequence[func.CallOp]
    signatures: Mapping[str, KernelSignature]

    @property
    def handed(self) -> list[SSAValue]:
        """What is handed over, in order."""
        return [call.arguments[self._signature(call).inputs] for call in self.chain[:-1]]

    @property
    def inputs(self) -> list[SSAValue]:
        """What any of them reads from outside, each once."""
        given = (v for call in self.chain for v in call.arguments[: self._signature(call).inputs])
        return list(dict.fromkeys(v for v in given if v not in self.handed))

    @property
    def outputs(self) -> list[SSAValue]:
        """What the last one writes."""
        last = self._signature(self.chain[-1])
        return [self.chain[-1].arguments[i] for i in last.output_range]

    @property
    def temporaries(self) -> list[SSAValue]:
        """The scratch of all."""
        starts = {call: self._signature(call).output_range.stop for call in self.chain}
        return [value for call in self.chain for value in call.arguments[starts[call] :]]

    @property
    def arguments(self) -> list[SSAValue]:
        """What one call for all is given, but for the blocks."""
        return [*self.inputs, *self.outputs, *self.temporaries]

    @property
    def key(self) -> object:
        """The same for chains that one function stands for."""
        numbers = {value: k for k, value in enumerate((*self.arguments, *self.handed))}
        return tuple((c.callee.string_value(), blocks_of(c), *(numbers[v] for v in c.arguments)) for c in self.chain)

    @property
    def overwrites(self) -> bool:
        """Whether the last one writes where another reads, which then would read what a later block needs."""
        *others, _ = self.chain
        read = {root_buffer(v) for call in others for v in call.arguments[: self._signature(call).inputs]}
        return any(root_buffer(v) in read for v in self.outputs)

    def in_place(self) -> list[tuple[int, int]]:
        """The pairs of outputs and inputs of the last one, of inputs that no other reads."""
        *others, last = self.chain
        read = {value for call in others for value in call.arguments}
        given = {i: last.arguments[i] for _, i in self._signature(last).in_place}
        own = {i: self.inputs.index(v) for i, v in given.items() if v in self.inputs and v not in read}
        return sorted((o, own[i]) for o, i in self._signature(last).in_place if i in own)

    def _signature(self, call: func.CallOp) -> KernelSignature:
        return self.signatures[call.callee.string_value()]


@dataclass(frozen=True)
class _Nest:
    """A kernel's function: the loops over blocks, outermost first, and what stands in front of them."""

    before: Sequence[Operation]
    loops: Sequence[ForOp]

    @classmethod
    def of(cls, function: func.FuncOp, depth: int) -> _Nest:
        """Raises NotOutlined where the function does not end with one loop after another, from 0 in steps of 1."""
        *before, last, _ = function.body.block.ops
        loops = [last]
        while len(loops) < depth:
            loops += loops[-1].body.block.ops if isinstance(loops[-1], ForOp) else [last]
        found = [loop for loop in loops if isinstance(loop, ForOp)]
        if len(found) != len(loops) or len(found) != depth or None in map(_count, found):
            raise NotOutlined("the outermost loops run over no blocks")
        return cls(before, found)

    @property
    def counts(self) -> list[int]:
        return [_count(loop) or 0 for loop in self.loops]

    @property
    def is_parallel(self) -> bool:
        return self.loops[0].kind.data is LoopKind.PARALLEL

    def check(self, parameters: Collection[SSAValue]) -> None:
        """Raise NotOutlined where something in front of the numbers of blocks is at another index of a parameter."""
        for use in (use for parameter in parameters for use in parameter.uses):
            if not all(_is_at(use.operation, axis, loop) for axis, loop in enumerate(self.loops)):
                raise NotOutlined("what is handed over is accessed at other places than its block")


def _count(loop: ForOp) -> int | None:
    found = loop.constant_range
    return len(found) if found is not None and found.start == 0 and found.step == 1 else None


def _is_at(op: Operation, axis: int, loop: ForOp) -> bool:
    """Whether an access's index along an axis is the loop's variable."""
    match op:
        case AccessOp():
            expr = op.map.results[axis]
            alone = isinstance(expr, AffineDimExpr) and op.indices[expr.position] is loop.variable
            return alone and not op.lane_steps[axis]
        case memref.LoadOp() | memref.StoreOp():
            return op.indices[axis] is loop.variable
        case _:
            return False


@dataclass
class BlockFunction:
    """Builds the function of a chain, which `threads` may share."""

    calls: Calls
    kernels: Mapping[str, func.FuncOp]
    threads: int
    _block: Block = field(default_factory=Block)
    _arguments: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def build(self) -> func.FuncOp:
        """The function, without a name; behind the arguments of `calls` it takes the blocks. Raises NotOutlined."""
        functions = [self.kernels[call.callee.string_value()] for call in self.calls.chain]
        nests = self._nests(functions)
        counts = nests[0].counts
        shares = min(self.threads, counts[0]) if any(nest.is_parallel for nest in nests) else 1
        self._add_arguments(len(counts), shares)
        copies = [Inlined(self._targets(*pair)) for pair in zip(self.calls.chain, functions, strict=True)]
        for nest, copy in zip(nests, copies, strict=True):
            copy.operations(nest.before, self._block)
        share, numbers, inside = self._loops(counts, shares)
        for nest, copy in zip(nests, copies, strict=True):
            self._at_blocks(copy, share, len(counts))
            copy.values |= {loop.variable: number for loop, number in zip(nest.loops, numbers, strict=True)}
            copy.block(nest.loops[-1].body.block, inside)
        self._block.add_op(func.ReturnOp())
        function = func.FuncOp("blocks", (list(self._block.arg_types), []), Region(self._block))
        self._note(function, functions)
        return function

    def _nests(self, functions: Sequence[func.FuncOp]) -> list[_Nest]:
        depths = {blocks_of(call) for call in self.calls.chain[:-1]}
        nests = [_Nest.of(function, max(depths)) for function in functions]
        if len(depths) > 1 or any(nest.counts != nests[0].counts for nest in nests):
            raise NotOutlined("the loops run over different blocks")
        handed = self.calls.handed
        for call, function, nest in zip(self.calls.chain, functions, nests, strict=True):
            given = zip(function.body.block.args, call.arguments, strict=True)
            nest.check([parameter for parameter, value in given if value in handed])
        return nests

    def _add_arguments(self, depth: int, shares: int) -> None:
        handed = self.calls.handed
        for value in (*self.calls.arguments, *handed):
            type_ = memref_type(value)
            if value in handed:
                lead = [shares] if shares > 1 else []
                type_ = MemRefType(type_.element_type, [*lead, *static_shape(value)[depth:]])
            argument = self._block.insert_arg(type_, len(self._block.args))
            argument.name_hint = value.name_hint
            self._arguments[value] = argument

    def _targets(self, call: func.CallOp, function: func.FuncOp) -> dict[SSAValue, Target]:
        given = zip(function.body.block.args, call.arguments, strict=True)
        return {p: Target(self._arguments[v], (), tuple(range(len(static_shape(v))))) for p, v in given}

    def _at_blocks(self, copy: Inlined, share: SSAValue | None, depth: int) -> None:
        """Let what is handed over lie in the blocks of a share."""
        blocks = {self._arguments[value] for value in self.calls.handed}
        prefix = () if share is None else (share,)
        for parameter, target in copy.targets.items():
            if target.buffer in blocks:
                copy.targets[parameter] = Target(target.buffer, prefix, target.axes[depth:])

    def _loops(self, counts: Sequence[int], shares: int) -> tuple[SSAValue | None, list[SSAValue], Block]:
        """The number of the share, where there are some, the numbers of the block, and the innermost body."""
        first, *others = (
            ForOp(AffineMap.constant_map(0), AffineMap.constant_map(count), label="block") for count in counts
        )
        around: list[ForOp] = []
        if shares > 1:
            part, number = -(-counts[0] // shares), AffineExpr.dimension(0)
            around = [
                ForOp(AffineMap.constant_map(0), AffineMap.constant_map(shares), kind=LoopKind.PARALLEL, label="share")
            ]
            end = AffineMap(1, 0, (number * part + part, AffineExpr.constant(counts[0])))
            first = ForOp(AffineMap(1, 0, (number * part,)), end, [around[0].variable], label="block")
        block = self._block
        for loop in (*around, first, *others):
            loop.variable.name_hint = loop.label.data if loop.label is not None else None
            block.add_op(loop)
            block = loop.body.block
        share = around[0].variable if around else None
        return share, [loop.variable for loop in (first, *others)], block

    def _note(self, function: func.FuncOp, functions: Sequence[func.FuncOp]) -> None:
        """What the loop stage wants to know of a function."""
        scratch = len(self.calls.temporaries) + len(self.calls.handed)
        function.attributes[OUTPUTS] = IntegerAttr(len(self.calls.outputs), i64)
        function.attributes[TEMPORARIES] = IntegerAttr(scratch, i64)
        pairs = self.calls.in_place()
        if pairs:
            function.attributes[IN_PLACE] = ArrayAttr([DenseArrayBase.from_list(i64, pair) for pair in pairs])
        note_kernels(function, functions)
        function.location = functions[-1].location
