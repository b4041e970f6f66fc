"""Reads of operands whose layout in memory differs from that of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.scalar import Read, Scalar, rewritten


def with_moved_reads(scalar: Scalar, maps: Mapping[int, AffineMap | None]) -> Scalar:
    """The scalar with reads of operand k at `maps[k]` of their index, where `maps` has one.

    Raises ValueError for a read at an index that is data where the map does more than permute that axis.
    """
    return rewritten(scalar, lambda leaf: _moved(leaf, maps.get(leaf.operand)) if isinstance(leaf, Read) else leaf)


def _moved(read: Read, map_: AffineMap | None) -> Read:
    if map_ is None:
        return read
    places = {d: map_.results.index(AffineExpr.dimension(d)) for d, _ in read.indirect}
    return replace(read, index=map_.compose(read.index), indirect=tuple((places[d], i) for d, i in read.indirect))
