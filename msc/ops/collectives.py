"""Collective operators in one process: what all ranks have together is what this one has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msc.frontend.errors import ApiValueError
from msc.frontend.process_group import HCCL_WORLD_COMM_GROUP, group_of, refused
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


def _reduced(function: str, op: object, group: object) -> None:
    group_of(group, function)
    if op not in ("sum", "max", "min", "prod", "avg"):
        raise ApiValueError("MSC0895", f"{function}: op is {described(op)}", help="ReduceOp.SUM, .MAX, .MIN, .PROD")


def _all_reduce(input_x: Tensor, *, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The sum, or another reduction, of a tensor of each rank: this rank's tensor."""
    _reduced("AllReduce", op, group)
    return input_x


def _reduce_scatter(input_x: Tensor, *, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The rank's own part of a reduction of all ranks: all of this rank's tensor."""
    _reduced("ReduceScatter", op, group)
    return input_x


def _all_gather(input_x: Tensor, *, group: str = HCCL_WORLD_COMM_GROUP) -> Tensor:
    """The tensors of all ranks along the first axis: this rank's tensor."""
    group_of(group, "AllGather")
    return input_x


def _broadcast(inputs: Any, *, root_rank: int, group: str = HCCL_WORLD_COMM_GROUP) -> Any:
    """The tensors of one rank: this rank's tensors."""
    group_of(group, "Broadcast")
    if root_rank != 0:
        raise refused(f"Broadcast: root_rank is {described(root_rank)}")
    return inputs


def _all_to_all(
    input_x: Tensor, *, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP
) -> Tensor:
    """Parts of an axis exchanged among ranks and joined along another one: the tensor, as there is one part."""
    group_of(group, "AlltoAll")
    if split_count != 1 or not (-input_x.ndim <= split_dim < input_x.ndim and -input_x.ndim <= concat_dim):
        raise refused(f"AlltoAll: split_count is {described(split_count)}", "split_count is 1")
    return input_x


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
    """Wait for all ranks, which are this one."""
    group_of(group, "barrier")


AllReduce = operator("AllReduce", _all_reduce, "op group")
ReduceScatter = operator("ReduceScatter", _reduce_scatter, "op group")
AllGather = operator("AllGather", _all_gather, "group")
Broadcast = operator("Broadcast", _broadcast, "root_rank group")
AlltoAll = operator("AlltoAll", _all_to_all, "split_count split_dim concat_dim group")
NeighborExchange = operator(
    "NeighborExchange", _neighbours, "send_rank_ids recv_rank_ids recv_shapes send_shapes recv_type group"
)
Barrier = operator("Barrier", barrier, "group")
