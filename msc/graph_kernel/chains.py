"""Chains of kernels, each the only reader of the one before, that one loop over blocks could run through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msc.analysis.kernel_model import kernel_model, output_positions
from msc.dialects.gk import KernelOp
from msc.graph_kernel.fusion.areas import MOST_OPERATIONS
from msc.ir.typed import static_shape
from msc.poly.alignment import aligned, is_along
from msc.poly.model import KernelModel
from msc.schedule.sums.partial_sums import long_sums
from msc.schedule.sums.sum_order import ROUNDED

MOST = 10
"""How many inputs the kernels of a chain may have: a bound of the search. A concatenation of many images has a
statement for each, and it takes long to choose and to prove the loops of what it is merged with.
"""
_Loop: TypeAlias = Mapping[int, int]
"""The dimension of each statement of a kernel that one loop runs over."""


@dataclass(frozen=True)
class Chain:
    """Kernels one after the other, and the axis of the result of each but the last that blocks are cut along."""

    kernels: tuple[KernelOp, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class _Link:
    """A kernel of a chain and the axis of its result, if it has one, that a loop of all its statements runs along."""

    kernel: KernelOp
    axis: int | None


def chains_from(first: KernelOp) -> Iterator[Chain]:
    """The chains that begin with a kernel, along each axis of its result as far as one loop runs through.

    They have no more inputs than `MOST`, and no more statements than `MOST_OPERATIONS`. The first kernel may reduce,
    but no long sum: where its blocks end would decide how it rounds. Those behind it sum nothing (a largest element is
    the same in any order), and read no element at an index that is data: each block might read any of them.
    """
    if first.parent is None or first.materialized or reader_of(first) is None or long_sums(kernel_model(first)):
        return
    (array,), model = output_positions(first), kernel_model(first)
    for axis in range(len(static_shape(first.results[0]))):
        links = _links(first, axis) if _loop_along(model, array, axis) is not None else ()
        for count in range(2, len(links) + 1):
            kernels = [link.kernel for link in links[:count]]
            if sum(len(kernel.inputs) for kernel in kernels) > MOST or _statements(kernels) > MOST_OPERATIONS:
                break
            axes = [link.axis for link in links[: count - 1] if link.axis is not None]
            yield Chain(tuple(kernels), tuple(axes))


def _statements(kernels: Iterable[KernelOp]) -> int:
    return sum(len(kernel_model(kernel).statements) for kernel in kernels)


def reader_of(kernel: KernelOp) -> KernelOp | None:
    """The kernel in the same block that alone reads the only result of one."""
    if len(kernel.results) > 1 or not kernel.results[0].has_one_use():
        return None
    reader = next(iter(kernel.results[0].uses)).operation
    return reader if isinstance(reader, KernelOp) and reader.parent is kernel.parent else None


def _links(kernel: KernelOp, axis: int) -> list[_Link]:
    """A kernel, a loop of which runs along an axis of its result, and those behind it that read blocks along that."""
    links = [_Link(kernel, axis)]
    while (link := _next(links[-1])) is not None:
        links.append(link)
    return links


def _next(link: _Link) -> _Link | None:
    """The reader of what a kernel gives, if it can compute what it reads of a block at a time."""
    reader = reader_of(link.kernel)
    if reader is None or reader.materialized or link.axis is None:
        return None
    model, given = kernel_model(reader), list(reader.inputs).index(link.kernel.results[0])
    loop = _loop_along(model, given, link.axis)
    if loop is None or any(s.combine in ROUNDED or given in s.whole_reads() for s in model.statements):
        return None
    results = output_positions(reader)
    axes = range(len(model.arrays[results[0]].shape)) if len(results) == 1 else ()
    return _Link(reader, next((a for a in axes if is_along(model, loop, results[0], a)), None))


def _loop_along(model: KernelModel, array: int, axis: int) -> _Loop | None:
    """The loop of all statements that an axis of an array is indexed by."""
    loops = aligned(model, range(len(model.statements))).loops
    return next((loop for loop in loops if is_along(model, loop, array, axis)), None)
