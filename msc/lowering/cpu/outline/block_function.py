"""One function of kernels that are computed at one loop: outer loops fused, a block of each result at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.loop import ForOp, LoopKind
from msc.dialects.loop.attributes import LOOP_BLOCKS, LOOP_IN_PLACE, LOOP_OUTPUTS, LOOP_TEMPORARIES
from msc.ir.typed import memref_type, static_shape
from msc.lowering.cpu.buffer_types import root_buffer
from msc.lowering.cpu.outline.block_loops import BlockLoops, common_counts
from msc.lowering.cpu.outline.inlined import Inlined, NotOutlined, Target, note_kernels
from msc.lowering.cpu.outline.loop_work import run_alone


def blocked_axes(call: func.CallOp) -> tuple[int, ...]:
    """The axes of a call's result along which it is computed in blocks; none for an ordinary one."""
    axes = call.attributes.get(LOOP_BLOCKS)
    return tuple(map(int, axes.get_values())) if isinstance(axes, DenseArrayBase) else ()


@dataclass(frozen=True)
class CallChain:
    """A chain of calls, each of whose one result the next one reads."""

    chain: Sequence[func.CallOp]
    signatures: Mapping[str, KernelSignature]

    @property
    def intermediates(self) -> dict[SSAValue, tuple[int, ...]]:
        """The intermediates, in order, and the axes of their blocks."""
        return {call.arguments[self._signature(call).inputs]: blocked_axes(call) for call in self.chain[:-1]}

    @property
    def inputs(self) -> list[SSAValue]:
        """What any of them reads from outside, each once."""
        given = (v for call in self.chain for v in call.arguments[: self._signature(call).inputs])
        return list(dict.fromkeys(v for v in given if v not in self.intermediates))

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
        numbers = {value: k for k, value in enumerate((*self.arguments, *self.intermediates))}
        return tuple((c.callee.string_value(), blocked_axes(c), *(numbers[v] for v in c.arguments)) for c in self.chain)

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


@dataclass
class BlockFunction:
    """Builds the function of a chain, which `threads` may share; blocks are local arrays if `is_local`."""

    calls: CallChain
    kernels: Mapping[str, func.FuncOp]
    threads: int
    is_local: bool
    _block: Block = field(default_factory=Block)
    _arguments: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def build(self) -> func.FuncOp:
        """The function, without a name; behind the arguments of `calls` it takes the blocks that are not local.

        Raises NotOutlined.
        """
        functions = [self.kernels[call.callee.string_value()] for call in self.calls.chain]
        nests = self._nests(functions)
        counts = common_counts(nests)
        shares = min(self.threads, counts[0]) if any(nest.is_parallel for nest in nests) else 1
        self._add_arguments()
        copies = [Inlined(self._targets(*pair)) for pair in zip(self.calls.chain, functions, strict=True)]
        for nest, copy in zip(nests, copies, strict=True):
            copy.operations(nest.before, self._block)
        share, numbers, inside = self._loops(counts, shares)
        blocks = self._blocks(numbers, counts, share, shares, inside)
        for call, function, nest, copy in zip(self.calls.chain, functions, nests, copies, strict=True):
            given = zip(function.body.block.args, call.arguments, strict=True)
            copy.targets |= {parameter: blocks[value] for parameter, value in given if value in blocks}
            nest.inline(copy, numbers, counts, inside)
        for loop in self._block.ops:
            if isinstance(loop, ForOp) and loop.kind.data is LoopKind.PARALLEL:
                run_alone(loop)
        self._block.add_op(func.ReturnOp())
        function = func.FuncOp("blocks", (list(self._block.arg_types), []), Region(self._block))
        self._note(function, functions)
        return function

    def _nests(self, functions: Sequence[func.FuncOp]) -> list[BlockLoops]:
        between = self.calls.intermediates
        depths = {len(axes) for axes in between.values()}
        nests = [BlockLoops.of(function, max(depths)) for function in functions]
        if len(depths) > 1:
            raise NotOutlined("the loops run over different blocks")
        for call, function, nest in zip(self.calls.chain, functions, nests, strict=True):
            for parameter, value in zip(function.body.block.args, call.arguments, strict=True):
                if value in between:
                    nest.check(parameter, [(axis, static_shape(value)[axis]) for axis in between[value]])
        return nests

    def _add_arguments(self) -> None:
        for value in self.calls.arguments:
            self._arguments[value] = self._argument(value, memref_type(value))

    def _argument(self, value: SSAValue, type_: MemRefType[Attribute]) -> SSAValue:
        argument = self._block.insert_arg(type_, len(self._block.args))
        argument.name_hint = value.name_hint
        return argument

    def _targets(self, call: func.CallOp, function: func.FuncOp) -> dict[SSAValue, Target]:
        given = zip(function.body.block.args, call.arguments, strict=True)
        known = ((p, v) for p, v in given if v in self._arguments)
        return {p: Target(self._arguments[v], (), tuple(range(len(static_shape(v))))) for p, v in known}

    def _blocks(
        self, numbers: Sequence[SSAValue], counts: Sequence[int], share: SSAValue | None, shares: int, inside: Block
    ) -> dict[SSAValue, Target]:
        """Where the one block of each intermediate lies that a share has at a time, without its axes of size 1."""
        found: dict[SSAValue, Target] = {}
        for value, along in self.calls.intermediates.items():
            sizes = {axis: static_shape(value)[axis] // count for axis, count in zip(along, counts, strict=True)}
            axes = [axis for axis in range(len(static_shape(value))) if sizes.get(axis) != 1]
            shape = [sizes.get(axis, static_shape(value)[axis]) for axis in axes]
            cut = {axis: (n, sizes[axis]) for axis, n in zip(along, numbers, strict=True) if axis in axes}
            element = memref_type(value).element_type
            if self.is_local:
                local = memref.AllocaOp.get(element, shape=shape)
                local.memref.name_hint = "block"
                inside.add_op(local)
                found[value] = Target(local.memref, (), tuple(axes), cut)
            else:
                lead = [] if share is None else [shares]
                buffer = self._argument(value, MemRefType(element, [*lead, *shape]))
                found[value] = Target(buffer, () if share is None else (share,), tuple(axes), cut)
        return found

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
        scratch = len(self.calls.temporaries) + (0 if self.is_local else len(self.calls.intermediates))
        function.attributes[LOOP_OUTPUTS] = IntegerAttr(len(self.calls.outputs), i64)
        function.attributes[LOOP_TEMPORARIES] = IntegerAttr(scratch, i64)
        pairs = self.calls.in_place()
        if pairs:
            function.attributes[LOOP_IN_PLACE] = ArrayAttr([DenseArrayBase.from_list(i64, pair) for pair in pairs])
        note_kernels(function, functions)
        function.location = functions[-1].location
