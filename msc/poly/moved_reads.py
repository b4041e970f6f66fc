"""Reads of operands that lie in memory otherwise than the values that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.scalar import Apply, Cast, Read, Scalar


def with_moved_reads(scalar: Scalar, maps: Mapping[int, AffineMap | None]) -> Scalar:
    """The scalar with reads of operand k at `maps[k]` of their index, where `maps` has one.

    Raises ValueError for a read at an index that is data where the map does more than permute that axis.
    """
    match scalar:
        case Read():
            return _moved(scalar, maps)
        case Apply():
            return Apply(scalar.op, tuple(with_moved_reads(a, maps) for a in scalar.args))
        case Cast():
            return replace(scalar, arg=with_moved_reads(scalar.arg, maps))
        case _:
            return scalar


def _moved(read: Read, maps: Mapping[int, AffineMap | None]) -> Read:
    map_ = maps.get(read.operand)
    indirect = tuple((d, with_moved_reads(i, maps)) for d, i in read.indirect)
    if map_ is None:
        return replace(read, indirect=indirect)
    places = {d: map_.results.index(AffineExpr.dimension(d)) for d, _ in indirect}
    return replace(read, index=map_.compose(read.index), indirect=tuple((places[d], i) for d, i in indirect))
