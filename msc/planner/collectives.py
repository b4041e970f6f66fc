"""Bytes and seconds of collectives among ranks that are a stride apart, over the levels of a cluster's links.

And how much of a gradient's communication is left when the backward pass ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msc.planner.cluster import Cluster

Kind: TypeAlias = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send"]


@dataclass(frozen=True)
class RankGroup:
    """`ranks` ranks, each `stride` after the last: those along one axis of a mesh."""

    ranks: int
    stride: int = 1


def seconds(cluster: Cluster, kind: Kind, bytes_: float, group: RankGroup) -> float:
    """The time of one collective, where `bytes_` is the size of the largest buffer of a rank.

    That is the reduced tensor, the gathered one, the one before it is scattered, what a rank sends to all, or a
    message.
    """
    if group.ranks <= 1 or not bytes_:
        return 0.0
    fixed, each = line(cluster, kind, group)
    return fixed + each * bytes_


def line(cluster: Cluster, kind: Kind, group: RankGroup) -> tuple[float, float]:
    """Seconds of a collective of no bytes, and of each byte.

    On each level of links a ring moves (p-1)/p of the bytes, twice for an all-reduce; what a level has reduced or
    scattered among its p members is p times smaller on the next.
    """
    if kind == "send":
        link = cluster.link_between(group.ranks, group.stride)
        return link.latency, 1 / link.rate
    passes = 2 if kind == "all_reduce" else 1
    fixed, each, share, reached = 0.0, 0.0, 1.0, 1
    for link, members in cluster.span(group.ranks, group.stride):
        fixed += passes * link.steps(members) * link.latency
        if kind == "all_to_all":
            each += (members - 1) * reached / group.ranks / link.rate
            reached *= members
        else:
            each += passes * (members - 1) / members * share / link.rate
            share /= members
    return fixed, each


def passed(kind: Kind, bytes_: float, group: RankGroup) -> float:
    """What a rank passes to the call: its own part before an all-gather, the whole buffer of all others."""
    if group.ranks <= 1:
        return 0.0
    return bytes_ / group.ranks if kind == "all_gather" else bytes_


def buckets(known: Iterable[tuple[float, float]], limit: float) -> Iterator[tuple[float, float]]:
    """Gradients together, as they become known, until they have `limit` bytes: when a bucket is full, and its bytes."""
    held, last = 0.0, 0.0
    for time, bytes_ in sorted(known):
        held, last = held + bytes_, time
        if held >= limit:
            yield last, held
            held = 0.0
    if held:
        yield last, held


def exposed_tail(
    known: Iterable[tuple[float, float]], end: float, limit: float, seconds: Callable[[float], float]
) -> float:
    """Seconds after `end` until all gradients are reduced.

    `known` has the time at which each gradient is known, and its bytes; `seconds` is the time of one reduction. A
    bucket is reduced when it is full and the one before it is done.
    """
    free = 0.0
    for ready, bytes_ in buckets(known, limit):
        free = max(free, ready) + seconds(bytes_)
    return max(0.0, free - end)
