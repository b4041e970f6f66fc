"""Collectives: what a rank makes of the tensors of its group, which an exchange gives (`dialects/ranks`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.collectives import CollectiveOp
from msc.dialects.ranks import current_ranks, exchanged, own_group, reduced, sent
from msc.interp.registry import meaning


def _exchanged(op: MsOp, x: Array) -> tuple[Sequence[Array], int]:
    collective = cast(CollectiveOp, op)
    return exchanged(collective.members, _words(op), x)


def _words(op: MsOp) -> str:
    """What must be the same on all ranks of the group."""
    words = [str(op.plain(name)) for name in sorted(op.properties) if name not in ("ranks", "groups")]
    return " ".join((op.name, *words))


def _part(op: MsOp, x: Array, name: str, place: int) -> Array:
    collective = cast(CollectiveOp, op)
    return np.split(x, collective.group_size, collective.axis_of(name))[place]


@meaning("all_reduce")
def _all_reduce(op: MsOp, x: Array) -> Array:
    return reduced(op.word("reduce"), _exchanged(op, x)[0])


@meaning("all_gather")
def _all_gather(op: MsOp, x: Array) -> Array:
    return np.concatenate(_exchanged(op, x)[0], cast(CollectiveOp, op).axis_of("axis"))


@meaning("reduce_scatter")
def _reduce_scatter(op: MsOp, x: Array) -> Array:
    values, place = _exchanged(op, x)
    return _part(op, reduced(op.word("reduce"), values), "axis", place)


@meaning("all_to_all")
def _all_to_all(op: MsOp, x: Array) -> Array:
    values, place = _exchanged(op, x)
    parts = [_part(op, value, "split", place) for value in values]
    return np.concatenate(parts, cast(CollectiveOp, op).axis_of("concat"))


@meaning("broadcast")
def _broadcast(op: MsOp, x: Array) -> Array:
    return _exchanged(op, x)[0][op.int_("root")]


@meaning("all_slice")
def _all_slice(op: MsOp, x: Array) -> Array:
    return _part(op, x, "axis", own_group(cast(CollectiveOp, op).members).index(current_ranks().rank))


@meaning("send_recv")
def _send_recv(op: MsOp, x: Array) -> Array:
    return sent(op.ints("ranks"), op.ints("to"), _words(op), x)
