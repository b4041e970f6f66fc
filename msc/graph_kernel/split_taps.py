"""Pass `split-taps`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations, groupby, product
from math import inf, prod
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import constant_bytes
from msc.analysis.constancy import is_constant
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.convolution_sections import Section, convolution_like, reached_by_taps, section_of
from msc.graph.emitter import Emitter
from msc.graph.expand.expand_composites import ExpandComposites
from msc.graph.expand.expanders.convolution import with_bias
from msc.graph.graph_loops import put_in_place
from msc.graph.simplify.canonicalize_ms import CanonicalizeMs
from msc.graph.weights.hoist_parameters import HoistParameters
from msc.graph_kernel.compute_at_consumers import merge_asked
from msc.graph_kernel.forms import module_of
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.layout_passes import LAYOUTS
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


# How the taps of a convolution can be split so that none reads padding, and the sum that takes its place.
SAVED = 6
"""One in so many products along an axis must have padding as a factor: a bound of the search, of no machine."""

MOST = 27
"""How many sections a split may have: a bound of the search, and of the code; three taps along each of three axes."""

LEAST = 16
"""How many products a result must have in each section: a bound of the search. Adding to it takes a load and store."""

Split: TypeAlias = Sequence[Sequence[Section]]
"""The sections along each axis; one that is the whole where taps are not split."""


def splits_of(op: ConvolutionOp) -> Sequence[Split]:
    """The ways to split taps: along each axis where that saves much, and along several."""
    if not op.is_padded or op.result_dtype() in ("f16", "bf16"):
        return ()
    whole = [[Section(range(taps), range(count))] for taps, count in zip(op.kernel(), op.output_spatial(), strict=True)]
    split = [_sections(axis) for axis in reached_by_taps(op)]
    saves = [axis for axis, sections in enumerate(split) if sections and _saves(sections, whole[axis][0])]
    subsets = chain.from_iterable(combinations(saves, count) for count in range(1, len(saves) + 1))
    found = [[split[axis] if axis in subset else whole[axis] for axis in range(op.SPATIAL)] for subset in subsets]
    return [each for each in found if prod(map(len, each)) <= MOST and _least_products(op, each) >= LEAST]


def _sections(reached: Sequence[range]) -> Sequence[Section]:
    """Neighbouring taps that read data for the same results; no taps that read data for none."""
    runs = [list(run) for _, run in groupby(range(len(reached)), key=reached.__getitem__)]
    return [Section(range(run[0], run[-1] + 1), reached[run[0]]) for run in runs if reached[run[0]]]


def _least_products(op: ConvolutionOp, split: Split) -> int:
    """Products for each result in the section that has the fewest."""
    return op.shape(1)[1] * prod(min(len(section.taps) for section in sections) for sections in split)


def _saves(sections: Sequence[Section], whole: Section) -> bool:
    return SAVED * (whole.size - sum(section.size for section in sections)) >= whole.size


def split_up(op: ConvolutionOp, split: Split) -> None:
    """The sum of the sections in place of a convolution, padded to the size of the result; the largest is the first."""
    op = _padded_before(op, [len(sections) == 1 for sections in split])
    emit, sizes = Emitter(op), op.output_spatial()
    terms = list[SSAValue]()
    for sections in sorted(product(*split), key=lambda each: -prod(len(section.results) for section in each)):
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
