"""Pass `split-taps`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.constancy import is_constant
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.compute_at_consumers import merge_asked
from msc.graph_kernel.forms import module_of
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.layout_passes import LAYOUTS
from msc.graph_kernel.tap_splits import Split, split_up, splits_of
from msc.graph_kernel.winograd.winograd import Winograd
from msc.ir.typed import tensor_type
from msc.schedule.kernel_cycles import KernelCycles

GAIN = 0.9
"""The part of the time that the sum of sections must come to by the model: it rounds otherwise, and the model errs."""


@dataclass(frozen=True)
class SplitTaps(ModulePass):
    """Compute no products with padding, where that takes less time.

    Takes: a graph. Gives: in place of a padded convolution of which many taps read padding for many results, as of a
    dilated one or of a volume of few images, a sum of convolutions. Each has the taps that read data for the same
    results, reads the part of the image that it needs, and adds to these results alone. Every weight belongs to one of
    them, so that no more weights are stored than before. The axes along which taps are split are those with the fewest
    predicted cycles, with the kernels and schedules that the passes behind this one give either form on one thread:
    the number of threads must change no bit. Left alone: f16 and bf16, whose partial sums would be rounded; all where
    calls decide sizes. Keeps: the meaning, as long as weights are finite; sums are rounded in another order.
    """

    name = "split-taps"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [] if has_open_sizes(op) else [o for o in op.walk() if isinstance(o, ConvolutionOp)]
        choices = {convolution: splits for convolution in found if (splits := splits_of(convolution))}
        if not choices:
            return
        weights = (each.results[0] for each in op.walk() if isinstance(each, GetParameterOp))
        cycles, between = KernelCycles.on_one_thread(op), constant_bytes(weights)
        distinct = {_key(convolution): convolution for convolution in reversed(choices)}
        lines = cycles.loops.choices(_Choice(ctx, cycles, between).of, list(distinct.values()))
        chosen = dict(zip(distinct, lines, strict=True))
        for convolution, splits in choices.items():
            for number in chosen[_key(convolution)]:
                split_up(convolution, splits[int(number)])
        cycles.loops.attach(op)


def _key(op: ConvolutionOp) -> object:
    """What a choice depends on."""
    return op.name, op.shape(0), op.shape(1), op.dtype(0), is_constant(op.weight), tuple(sorted(op.properties.items()))


@dataclass(frozen=True)
class _Choice:
    """The choice among the splits of convolutions in a network whose constants have so many bytes."""

    context: Context
    cycles: KernelCycles
    between: int

    def of(self, convolution: ConvolutionOp) -> list[str]:
        """The number of the split with the fewest cycles, if it gains enough."""
        best, most = list[str](), GAIN * self._cycles(convolution, None)
        for number, split in enumerate(splits_of(convolution)):
            cycles = self._cycles(convolution, split, most)
            if cycles < most:
                best, most = [str(number)], cycles
        return best

    def _cycles(self, like: ConvolutionOp, split: Split | None, most: float = inf) -> float:
        """Of a convolution alone in a module, split or not, up to `most`."""
        module, convolution = _module_of(like)
        if split is not None:
            split_up(convolution, split)
        for after in (ExpandComposites(), CanonicalizeMs(), HoistParameters(), ClusterKernels(), Winograd(), *LAYOUTS):
            after.apply(self.context, module)
        merge_asked(module)
        return self.cycles.of(kernels_in(module), self.between, most)


def _module_of(convolution: ConvolutionOp) -> tuple[ModuleOp, ConvolutionOp]:
    """A module that runs a copy of a convolution, with parameters for what is constant, and the copy."""
    constants = {value: f"operand{k}" for k, value in enumerate(convolution.operands) if is_constant(value)}
    others = [value for value in convolution.operands if value not in constants]
    given = [GetParameterOp(name, tensor_type(value)) for value, name in constants.items()]
    block = Block(arg_types=[value.type for value in others])
    known = zip([*others, *constants], [*block.args, *(op.results[0] for op in given)], strict=True)
    copy = convolution.clone(dict[SSAValue, SSAValue](known))
    module = module_of(block, [*given, copy], convolution)
    function = module.body.block.first_op
    assert function is not None
    for value, name in constants.items():
        module.body.block.insert_op_before(ParameterOp(name, tensor_type(value)), function)
    return module, copy
