"""Accesses to arrays that lie in memory with permuted axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir.affine import AffineMap

from msc.poly.scalar import Apply, Cast, Read, Scalar


def permuted_results(map_: AffineMap, perm: Sequence[int]) -> AffineMap:
    """The map whose result k is result `perm[k]` of `map_`."""
    return AffineMap(map_.num_dims, map_.num_symbols, tuple(map_.results[p] for p in perm))


def with_permuted_reads(scalar: Scalar, perms: Mapping[int, Sequence[int]]) -> Scalar:
    """The scalar with reads of array k going to permuted indices, where `perms` has k."""
    match scalar:
        case Read():
            perm = perms.get(scalar.operand)
            indirect = tuple((d, with_permuted_reads(i, perms)) for d, i in scalar.indirect)
            if perm is None:
                return replace(scalar, indirect=indirect)
            moved = tuple((list(perm).index(d), i) for d, i in indirect)
            return replace(scalar, index=permuted_results(scalar.index, perm), indirect=moved)
        case Apply():
            return Apply(scalar.op, tuple(with_permuted_reads(a, perms) for a in scalar.args))
        case Cast():
            return Cast(with_permuted_reads(scalar.arg, perms), scalar.dtype)
        case _:
            return scalar
