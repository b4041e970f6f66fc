"""Pass `split-taps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations, groupby, product

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.constancy import is_constant
from msc.analysis.properties import CONSTANTS_ARE_PARAMETERS, SHAPES_KNOWN, UNCLUSTERED, WEIGHTS_HOISTED
from msc.analysis.target import target_of
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.ms.target import set_target, target_attribute
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.convolution_sections import Section, convolution_like, reached_by_taps, section_of
from msc.graph.emitter import Emitter
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.expand.expanders.convolution import with_bias
from msc.graph.graph_loops import put_in_place
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.compute_at_consumers import kernels_in, merge_asked
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.fusion.fuse_pads import FusePads
from msc.graph_kernel.layout.assign_layouts import AssignLayouts
from msc.graph_kernel.layout.pack_operands import PackOperands
from msc.graph_kernel.layout.read_slices import ReadSlices
from msc.graph_kernel.layout.read_transposed import ReadTransposed
from msc.graph_kernel.winograd.winograd import Winograd
from msc.ir.contracts import Contract
from msc.ir.typed import tensor_type
from msc.schedule.kernel_cycles import KernelCycles

SAVED = 8
"""One in so many products along an axis must have padding as a factor: a bound of the search, of no machine."""
GAIN = 0.9
"""The part of the time that the sum of sections must come to by the model: it rounds otherwise, and the model errs."""

Split = Sequence[Sequence[Section]]
"""The sections along each axis."""


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
    contract = Contract(
        requires=(SHAPES_KNOWN, UNCLUSTERED),
        breaks=(CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED),
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [] if has_open_sizes(op) else [o for o in op.walk() if isinstance(o, ConvolutionOp)]
        choices = {convolution: splits for convolution in found if (splits := _splits(convolution))}
        if not choices:
            return
        cycles, between = (
            KernelCycles.on(replace(target_of(op), threads=1)),
            constant_bytes(each.results[0] for each in op.walk() if isinstance(each, GetParameterOp)),
        )
        chosen = dict[object, Split | None]()
        for convolution, splits in choices.items():
            key = _key(convolution)
            if key not in chosen:
                chosen[key] = _Choice(ctx, cycles, between, convolution).best(splits)
            split = chosen[key]
            if split is not None:
                _replace(convolution, split)


def _splits(op: ConvolutionOp) -> Sequence[Split]:
    """The ways to split taps: along each axis where that saves much, and along several."""
    if not op.is_padded or op.result_dtype() in ("f16", "bf16"):
        return ()
    whole = [[Section(range(taps), range(count))] for taps, count in zip(op.kernel(), op.output_spatial(), strict=True)]
    split = [_sections(axis) for axis in reached_by_taps(op)]
    saves = [axis for axis, sections in enumerate(split) if sections and _saves(sections, whole[axis][0])]
    subsets = chain.from_iterable(combinations(saves, count) for count in range(1, len(saves) + 1))
    return [[split[axis] if axis in subset else whole[axis] for axis in range(op.SPATIAL)] for subset in subsets]


def _sections(reached: Sequence[range]) -> Sequence[Section]:
    """Neighbouring taps that read data for the same results; no taps that read data for none."""
    runs = [list(run) for _, run in groupby(range(len(reached)), key=reached.__getitem__)]
    return [Section(range(run[0], run[-1] + 1), reached[run[0]]) for run in runs if reached[run[0]]]


def _saves(sections: Sequence[Section], whole: Section) -> bool:
    return SAVED * (whole.size - sum(section.size for section in sections)) >= whole.size


def _replace(op: ConvolutionOp, split: Split) -> None:
    """The sum of the sections in place of a convolution, padded to the size of the result; the largest is the first."""
    op = _padded_before(op, [len(sections) == 1 for sections in split])
    emit, sizes = Emitter(op), op.output_spatial()
    terms = list[SSAValue]()
    for sections in sorted(product(*split), key=lambda each: -sum(len(section.results) for section in each)):
        term = section_of(op, sections, emit)
        around = [(each.results.start, size - each.results.stop) for each, size in zip(sections, sizes, strict=True)]
        terms.append(emit.pad_spatial(term, around))
    total = reduce(lambda first, second: emit(AddOp, first, second), terms)
    put_in_place(emit, with_bias(total, op.bias, op.SPATIAL + 2, emit), "convolution")


def _padded_before(op: ConvolutionOp, axes: Sequence[bool]) -> ConvolutionOp:
    """The same convolution of an image that is padded along some axes in front: all sections read that one."""
    emit, padding, none = Emitter(op), op.padding(), (0, 0)
    image = emit.pad_spatial(op.x, [each if before else none for each, before in zip(padding, axes, strict=True)])
    left = [none if before else each for each, before in zip(padding, axes, strict=True)]
    made = convolution_like(op, emit, image, op.weight, op.bias, left)
    put_in_place(emit, made, "convolution")
    assert isinstance(made.owner, ConvolutionOp)
    return made.owner


def _key(op: ConvolutionOp) -> object:
    """What a choice depends on."""
    return op.name, op.shape(0), op.shape(1), op.dtype(0), is_constant(op.weight), tuple(sorted(op.properties.items()))


@dataclass(frozen=True)
class _Choice:
    """The choice among the splits of a convolution."""

    context: Context
    cycles: KernelCycles
    between: int
    convolution: ConvolutionOp

    def best(self, splits: Sequence[Split]) -> Split | None:
        """The split with the fewest cycles, if it gains enough."""
        best, most = None, GAIN * self._cycles(None)
        for split in splits:
            cycles = self._cycles(split, most)
            if cycles < most:
                best, most = split, cycles
        return best

    def _cycles(self, split: Split | None, most: float = float("inf")) -> float:
        """Of the convolution alone in a module, split or not, up to `most`."""
        module, convolution = self._module()
        if split is not None:
            _replace(convolution, split)
        for after in (ExpandComposites(), CanonicalizeMs(), HoistParameters(), ClusterKernels(), Winograd(), *_LAYOUTS):
            after.apply(self.context, module)
        merge_asked(module)
        return self.cycles.of(kernels_in(module), self.between, most)

    def _module(self) -> tuple[ModuleOp, ConvolutionOp]:
        """A module for one thread that runs a copy of the convolution, and the copy."""
        values = [value for value in self.convolution.operands if not is_constant(value)]
        block = Block(arg_types=[value.type for value in values])
        given: list[Operation] = []
        known: dict[SSAValue, SSAValue] = dict(zip(values, block.args, strict=True))
        weights = [value for value in self.convolution.operands if value not in known]
        for k, value in enumerate(dict.fromkeys(weights)):
            given.append(GetParameterOp(f"weight{k}", tensor_type(value)))
            known[value] = given[-1].results[0]
        copy = self.convolution.clone(known)
        block.add_ops([*given, copy, ReturnOp(copy.results[0])])
        parameters = [ParameterOp(f"weight{k}", tensor_type(value)) for k, value in enumerate(dict.fromkeys(weights))]
        function = FuncOp("main", (block.arg_types, [copy.results[0].type]), Region(block))
        module = ModuleOp([*parameters, function])
        target = target_attribute(self.convolution)
        if target is not None:
            set_target(module, target.with_threads(1))
        return module, copy


_LAYOUTS = FusePads(), AssignLayouts(), ReadTransposed(), ReadSlices(), PackOperands()
