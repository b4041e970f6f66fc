"""How the taps of a convolution can be split so that none reads padding, and the sum that takes its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain, combinations, groupby, product
from math import prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.convolution import ConvolutionOp
from msc.graph.convolution_sections import Section, convolution_like, reached_by_taps, section_of
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.convolution import with_bias
from msc.graph.graph_loops import put_in_place

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
