"""MindSpore's `communication` in one process: this is rank 0 of 1.

A program that asks for ranks runs as it is. Whatever needs a second process is refused (MSC0895), and so is a launcher
that has started several.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.support.argument_values import described

__all__ = [
    "HCCL_WORLD_COMM_GROUP", "MCCL_WORLD_COMM_GROUP", "NCCL_WORLD_COMM_GROUP", "GlobalComm", "create_group",
    "destroy_group", "get_comm_name", "get_group_rank_from_world_rank", "get_group_size", "get_local_rank",
    "get_local_rank_size", "get_process_group_ranks", "get_rank", "get_world_rank_from_group_rank", "init",
    "release",
]  # fmt: skip

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLD = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)
_BACKENDS = ("hccl", "nccl", "mccl")
_SIZES = ("RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE")
"""Where launchers say how many processes they start."""

_groups: set[str] = set()


class GlobalComm:
    """What is known of the group of all processes."""

    BACKEND: str = "hccl"
    WORLD_COMM_GROUP: str = HCCL_WORLD_COMM_GROUP
    INITED: bool = False
    CHECK_ENVS = True


def refused(what: str, help: str = "run it in one process") -> ApiValueError:
    """The error of what needs more than one process."""
    return ApiValueError("MSC0895", f"{what}; msc runs one process, rank 0 of 1", help=help)


def group_of(group: object, function: str) -> str:
    """The name of a group that there is. Raises MSC0895."""
    if not isinstance(group, str):
        raise ApiTypeError("MSC0895", f"{function}: group is {described(group)}; it is the name of a group")
    if group not in _WORLD and group not in _groups:
        raise ApiValueError(
            "MSC0895", f"{function}: there is no group '{group}'", help=f"create_group('{group}', [0]) makes it"
        )
    return group


def _only_rank(function: str, rank: object) -> int:
    if rank != 0 or isinstance(rank, bool):
        raise refused(f"{function}: there is no rank {described(rank)}")
    return 0


def init(backend_name: str | None = None) -> None:
    """Begin to communicate. Raises MSC0895 if a launcher has started several processes, or for another backend."""
    if backend_name is not None and backend_name not in _BACKENDS:
        words = ", ".join(map(repr, _BACKENDS))
        raise ApiValueError("MSC0895", f"init: backend_name is {described(backend_name)}, not one of {words}")
    for name in _SIZES:
        size = os.environ.get(name, "1")
        if size.strip() not in ("", "0", "1"):
            raise refused(f"init: {name}={size} in the environment means several processes", f"run it without {name}")
    GlobalComm.BACKEND = backend_name or GlobalComm.BACKEND
    GlobalComm.WORLD_COMM_GROUP = f"{GlobalComm.BACKEND}_world_group"
    GlobalComm.INITED = True


def release() -> None:
    """End to communicate."""
    _groups.clear()
    GlobalComm.INITED = False


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process in a group: 0. Raises MSC0895 for a group that there is not, as all below."""
    group_of(group, "get_rank")
    return 0


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process among those of its machine: 0."""
    group_of(group, "get_local_rank")
    return 0


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes are in a group: 1."""
    group_of(group, "get_group_size")
    return 1


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of a group are on this machine: 1."""
    group_of(group, "get_local_rank_size")
    return 1


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank among all processes of one in a group."""
    group_of(group, "get_world_rank_from_group_rank")
    return _only_rank("get_world_rank_from_group_rank", group_rank_id)


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a process that has another one among all."""
    group_of(group, "get_group_rank_from_world_rank")
    return _only_rank("get_group_rank_from_world_rank", world_rank_id)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The ranks of the processes in a group."""
    group_of(group, "get_process_group_ranks")
    return [0]


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the communicator of a group: the group's."""
    return group_of(group, "get_comm_name")


def create_group(group: str, rank_ids: Sequence[int], options: object = None) -> None:
    """Make a group of ranks, of which there is 0. Raises MSC0895."""
    if options is not None:
        raise ApiValueError("MSC0895", "create_group: there are no options", help="leave options out")
    if not isinstance(group, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ApiTypeError("MSC0895", f"create_group: group is {described(group)}; it is a name")
    if list(rank_ids) != [0]:
        raise refused(f"create_group: rank_ids are {described(rank_ids)}", f"create_group('{group}', [0])")
    _groups.add(group)


def destroy_group(group: str) -> None:
    """Remove a group. Raises MSC0895 for that of all processes."""
    if group_of(group, "destroy_group") in _WORLD:
        raise ApiValueError("MSC0895", f"destroy_group: '{group}' has all processes and stays", help="release() ends")
    _groups.discard(group)
