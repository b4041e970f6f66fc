"""Collective operators: what all ranks of a group compute together; of one rank, what it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from msc.dialects.ranks import current_ranks
from msc.frontend.dispatch import apply
from msc.frontend.errors import ApiValueError
from msc.frontend.process_group import HCCL_WORLD_COMM_GROUP, group_of, group_ranks, refused
from msc.frontend.tensor import Tensor
from msc.ops.primitive import operator
from msc.support.argument_values import described

__all__ = [
    "AllGather", "AllReduce", "AlltoAll", "Barrier", "Broadcast", "NeighborExchange", "ReduceOp", "ReduceScatter",
    "barrier",
]  # fmt: skip


class ReduceOp:
    """How a reduction joins the tensors of all ranks."""

    SUM, MAX, MIN, PROD, AVG = "sum", "max", "min", "prod", "avg"


def _reduced(function: str, op: object, group: object) -> tuple[int, ...]:
    ranks = group_ranks(group, function)
    if op not in ("sum", "max", "min", "prod", "avg"):
        raise ApiValueError("MSC0895", f"{function}: op is {described(op)}", help="ReduceOp.SUM, .MAX, .MIN, .PROD")
    return ranks


def _averaged(op: str, ranks: tuple[int, ...], total: Tensor) -> Tensor:
    return total / len(ranks) if op == "avg" else total


def _all_reduce(input_x: Tensor, *, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The sum, or another reduction, of a tensor of each rank of the group."""
    ranks = _reduced("AllReduce", op, group)
    if len(ranks) == 1:
        return input_x
    word = "sum" if op == "avg" else op
    return _averaged(op, ranks, apply("all_reduce", input_x, ranks=ranks, reduce=word))


def _reduce_scatter(input_x: Tensor, *, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The rank's own part along the first axis of a reduction of all ranks of the group."""
    ranks = _reduced("ReduceScatter", op, group)
    if len(ranks) == 1:
        return input_x
    word = "sum" if op == "avg" else op
    return _averaged(op, ranks, apply("reduce_scatter", input_x, ranks=ranks, reduce=word))


def _all_gather(input_x: Tensor, *, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The tensors of all ranks of the group along the first axis."""
    ranks = group_ranks(group, "AllGather")
    return input_x if len(ranks) == 1 else apply("all_gather", input_x, ranks=ranks)


def _broadcast(inputs: Any, *, root_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """The tensors of one rank of the group: of each of a tuple, or of one."""
    ranks = group_ranks(group, "Broadcast")
    if root_rank not in ranks or isinstance(root_rank, bool):
        raise refused(f"Broadcast: root_rank is {described(root_rank)}")
    if len(ranks) == 1:
        return inputs
    if isinstance(inputs, tuple | list):
        return tuple(_broadcast(each, root_rank=root_rank, group=group) for each in inputs)  # pyright: ignore[reportUnknownVariableType]
    return apply("broadcast", inputs, ranks=ranks, root=ranks.index(root_rank))


def _all_to_all(
    input_x: Tensor, *, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP
) -> Tensor:
    """Parts of an axis exchanged among ranks and joined along another one."""
    ranks = group_ranks(group, "AlltoAll")
    if split_count != len(ranks) or not all(-input_x.ndim <= axis < input_x.ndim for axis in (split_dim, concat_dim)):
        raise refused(f"AlltoAll: split_count is {described(split_count)}", f"split_count is {len(ranks)}")
    if len(ranks) == 1:
        return input_x
    return apply("all_to_all", input_x, ranks=ranks, split=split_dim, concat=concat_dim)


BUCKET_BYTES = 32 << 20
"""Tensors of one element type are reduced together up to so many bytes: a call takes long before its first byte."""


def all_reduced(tensors: Sequence[Tensor], mean: bool, group: str = HCCL_WORLD_COMM_GROUP) -> list[Tensor]:
    """The sums, or means, of the tensors of all ranks of a group, many in one collective."""
    ranks = group_ranks(group, "AllReduce")
    if len(ranks) == 1:
        return list(tensors)
    found: dict[int, Tensor] = {}
    for bucket in _buckets(tensors):
        flat = [apply("reshape", tensors[n], shape=(tensors[n].size,)) for n in bucket]
        joined = flat[0] if len(flat) == 1 else apply("concat", *flat, axis=0)
        total = _all_reduce(joined, op="avg" if mean else "sum", group=group)
        start = 0
        for n in bucket:
            end = start + tensors[n].size
            part = apply("slice", total, begin=(start,), end=(end,))
            found[n] = apply("reshape", part, shape=tensors[n].shape)
            start = end
    return [found[n] for n in range(len(tensors))]


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[int]]:
    """Numbers of tensors of one element type, in their order, with at most `BUCKET_BYTES`, or one tensor."""
    open_: dict[str, tuple[int, list[int]]] = {}
    for n, tensor in enumerate(tensors):
        dtype, size = str(tensor.dtype), tensor.size * tensor.itemsize
        held, numbers = open_.get(dtype, (0, []))
        if numbers and held + size > BUCKET_BYTES:
            yield numbers
            held, numbers = 0, []
        open_[dtype] = held + size, [*numbers, n]
    yield from (numbers for _, numbers in open_.values())


def _neighbours(
    inputs: Any,
    *,
    send_rank_ids: Sequence[int],
    recv_rank_ids: Sequence[int],
    recv_shapes: Any,
    send_shapes: Any,
    recv_type: Any,
    group: str = HCCL_WORLD_COMM_GROUP,
) -> Any:
    """Tensors exchanged with other ranks. Raises MSC0895 if there are any."""
    group_of(group, "NeighborExchange")
    if list(send_rank_ids) + list(recv_rank_ids):
        raise refused(f"NeighborExchange of {recv_type}: {described(send_shapes)} for {described(recv_shapes)}")
    return inputs


def barrier(group: str = HCCL_WORLD_COMM_GROUP) -> None:
    """Wait for all ranks of the group."""
    ranks = group_ranks(group, "barrier")
    current_ranks().exchange(ranks, "barrier", np.zeros(()))


AllReduce = operator("AllReduce", _all_reduce, "op group")
ReduceScatter = operator("ReduceScatter", _reduce_scatter, "op group")
AllGather = operator("AllGather", _all_gather, "group")
Broadcast = operator("Broadcast", _broadcast, "root_rank group")
AlltoAll = operator("AlltoAll", _all_to_all, "split_count split_dim concat_dim group")
NeighborExchange = operator(
    "NeighborExchange", _neighbours, "send_rank_ids recv_rank_ids recv_shapes send_shapes recv_type group"
)
Barrier = operator("Barrier", barrier, "group")
