"""How the scalar units of several cores share a kernel's loops: each takes a part of one dimension of the results."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineDimExpr

from msc.dialects.arrays import numpy_dtype
from msc.poly.model import Array, KernelModel
from msc.poly.scalar import reads
from msc.targets.davinci import DavinciTarget


@dataclass(frozen=True)
class Share:
    """`cores` run the loops; the busiest does `part` of all points."""

    cores: int
    part: float


def share_of(model: KernelModel, cycles: float, target: DavinciTarget) -> Share:
    """The share with which a kernel of so many cycles ends first: each core more starts later than the one before."""
    start = target.cores.launch_us * target.clock.mhz
    found = [Share(1, 1.0)]
    for array, written in enumerate(model.arrays):
        for dimension, extent in enumerate(written.shape):
            split = _split(model, array, dimension) if written.kind == "output" and extent > 1 else None
            if split is not None:
                found += _shares(model, split, extent, target)
    return min(found, key=lambda share: (share.part * cycles + (share.cores - 1) * start, share.cores))


def _shares(model: KernelModel, split: dict[int, int], extent: int, target: DavinciTarget) -> list[Share]:
    most, line = target.cores.vector, target.scalar.line
    sizes = {-(-extent // cores) for cores in range(2, most + 1)}
    sizes |= {1 << k for k in range(extent.bit_length())}
    return [
        Share(-(-extent // size), size / extent)
        for size in sorted(sizes)
        if 2 <= -(-extent // size) <= most
        and all(_whole_lines(model.arrays[a], d, size, line) for a, d in split.items())
    ]


def _whole_lines(array: Array, dimension: int, size: int, line: int) -> bool:
    """Whether parts of `size` of a dimension begin at cache lines. Two cores never write into one line."""
    step = array.strides[dimension] * numpy_dtype(array.dtype).itemsize
    outer = prod(array.shape[:dimension])
    return size * step % line == 0 and (outer == 1 or array.shape[dimension] * step % line == 0)


def _split(model: KernelModel, array: int, dimension: int) -> dict[int, int] | None:
    """The dimension of each array that is written along which cores share, if no core needs what another writes.

    Every statement then runs over the part of one of its dimensions, and finds that dimension as the index of what it
    writes, and of what it reads that another statement writes. None where one does not.
    """
    found = {array: dimension}
    written = {statement.target for statement in model.statements}
    left = list(range(len(model.statements)))
    while left:
        ready = [k for k in left if any(a in found for a, _ in model.statements[k].accesses())]
        if not ready:
            return None
        for k in ready:
            if not _follows(model, k, found, written):
                return None
            left.remove(k)
    return found


def _follows(model: KernelModel, number: int, found: dict[int, int], written: set[int]) -> bool:
    """Whether a statement can be shared along what is found; what it adds goes into `found`."""
    statement, extent = model.statements[number], _extent(model, found)
    if any(read.indirect and read.operand in written for read in reads(statement.body)):
        return False
    accesses = [(a, index) for a, index in statement.accesses() if a in written]
    known = {index.results[found[a]] for a, index in accesses if a in found}
    if len(known) != 1 or not isinstance(shared := next(iter(known)), AffineDimExpr):
        return False
    if statement.extents[shared.position] != extent:
        return False
    for a, index in accesses:
        places = [d for d, expr in enumerate(index.results) if expr == shared]
        if a not in found and places and model.arrays[a].shape[places[0]] == extent:
            found[a] = places[0]
    return all(a in found and index.results[found[a]] == shared for a, index in accesses)


def _extent(model: KernelModel, found: dict[int, int]) -> int:
    array, dimension = next(iter(found.items()))
    return model.arrays[array].shape[dimension]
