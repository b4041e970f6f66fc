"""MindSpore's `communication`: which process this is among those that a launcher started, and groups of them.

`mpirun -n 4 python train.py` starts four, which meet through mpi4py once `init` is called. A program that is started by
itself is rank 0 of 1, and touches no MPI. Whatever needs more processes than there are is refused (MSC0895).
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import Any

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ranks import current_ranks, install, unmet
from msc.frontend.boundary import elsewhere
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
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MS_WORKER_NUM", "RANK_SIZE", "WORLD_SIZE")
"""Where launchers say how many processes they start."""
_LOCAL = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
_SAME = "all ranks of a group run the same collectives in the same order, with tensors of one shape"

_groups: dict[str, tuple[int, ...]] = {}


class GlobalComm:
    """What is known of the group of all processes."""

    BACKEND: str = "hccl"
    WORLD_COMM_GROUP: str = HCCL_WORLD_COMM_GROUP
    INITED: bool = False
    CHECK_ENVS = True


@dataclass
class _MpiRanks:
    """The processes of a launcher, which exchange what they have through mpi4py."""

    mpi: Any
    groups: dict[tuple[int, ...], Any] = field(default_factory=dict[tuple[int, ...], Any])

    @property
    def rank(self) -> int:
        return self.mpi.COMM_WORLD.Get_rank()

    @property
    def size(self) -> int:
        return self.mpi.COMM_WORLD.Get_size()

    def exchange(self, members: Sequence[int], what: str, value: Array) -> Sequence[Array]:
        key = tuple(members)
        if self.rank not in key or max(key) >= self.size:
            raise unmet(f"rank {self.rank} of {self.size} meets {what} among ranks {list(key)}", _SAME)
        if key not in self.groups:
            world = self.mpi.COMM_WORLD
            self.groups[key] = world.Create_group(world.Get_group().Incl(list(key)))
        met: list[tuple[str, Array]] = self.groups[key].allgather((what, value))
        for rank, (other, _) in zip(key, met, strict=True):
            if other != what:
                raise unmet(f"rank {self.rank} meets {what}, but rank {rank} meets {other}", _SAME)
        return [array for _, array in met]


def refused(what: str, help: str = "start more: mpirun -n 4 python train.py, with init() in it") -> ApiValueError:
    """The error of what needs other processes than there are."""
    return ApiValueError("MSC0895", f"{what}; this is rank {current_ranks().rank} of {current_ranks().size}", help=help)


def group_ranks(group: object, function: str) -> tuple[int, ...]:
    """The ranks of a group that there is. Raises MSC0895."""
    if not isinstance(group, str):
        raise ApiTypeError("MSC0895", f"{function}: group is {described(group)}; it is the name of a group")
    if group not in _WORLD and group not in _groups:
        raise ApiValueError(
            "MSC0895", f"{function}: there is no group '{group}'", help=f"create_group('{group}', [0]) makes it"
        )
    return tuple(range(current_ranks().size)) if group in _WORLD else _groups[group]


def group_of(group: object, function: str) -> str:
    """The name of a group that there is. Raises MSC0895."""
    group_ranks(group, function)
    return str(group)


def is_first_rank() -> bool:
    """Whether this process speaks for all: it logs, and writes files that all ranks have alike."""
    return current_ranks().rank == 0


def exchanged_by_all(what: str, value: Array) -> Sequence[Array]:
    """What each rank has, on every rank; shapes may differ. Raises MSC1104 if ranks ask for different things."""
    return current_ranks().exchange(range(current_ranks().size), what, value)


def broadcast_from_first(what: str, value: Array) -> Array:
    """What rank 0 has, on every rank. Raises MSC1104 if ranks ask for different things."""
    return exchanged_by_all(f"{what} of {value.shape} {value.dtype}", value)[0]


def init(backend_name: str | None = None) -> None:
    """Begin to communicate with the processes of the launcher, if it started several.

    Raises MSC0895 for another backend, and MSC1105 where there are several processes and no mpi4py.
    """
    if backend_name is not None and backend_name not in _BACKENDS:
        words = ", ".join(map(repr, _BACKENDS))
        raise ApiValueError("MSC0895", f"init: backend_name is {described(backend_name)}, not one of {words}")
    wanted = {name: os.environ.get(name, "").strip() for name in _SIZES}
    said = next(((name, size) for name, size in wanted.items() if size not in ("", "0", "1")), None)
    if said is not None and not isinstance(current_ranks(), _MpiRanks):
        _begin(*said)
    GlobalComm.BACKEND = backend_name or GlobalComm.BACKEND
    GlobalComm.WORLD_COMM_GROUP = f"{GlobalComm.BACKEND}_world_group"
    GlobalComm.INITED = True


def _begin(name: str, size: str) -> None:
    """Meet the others. From then on an error that ends this process ends all: they would wait for it for ever."""
    try:
        mpi = import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        message = f"init: {name}={size} says that several processes run, and mpi4py is not there: {error}"
        help = "pip install 'msc-compiler[parallel]', with OpenMPI or MPICH of the system"
        raise ApiValueError("MSC1105", message, help=help) from None
    ranks = _MpiRanks(mpi)
    if ranks.size == 1:
        raise refused(f"init: {name}={size} in the environment means several processes", f"run it without {name}")
    version: str = import_module("msc").__version__
    check_versions(ranks.mpi.COMM_WORLD.allgather((version, platform.python_version(), np.__version__)))
    install(ranks)
    shown = sys.excepthook

    def ended(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown(kind, error, traceback)
        sys.stderr.write(f"rank {ranks.rank} ended, and with it all {ranks.size}\n")
        sys.stderr.flush()
        ranks.mpi.COMM_WORLD.Abort(1)

    sys.excepthook = ended


def check_versions(versions: Sequence[tuple[str, str, str]]) -> None:
    """Raises MSC1111 unless all ranks have the same msc, Python and NumPy."""
    other = next((rank for rank, found in enumerate(versions) if found != versions[0]), None)
    if other is not None:
        rows = ["rank {} has msc {}, Python {}, NumPy {}".format(rank, *versions[rank]) for rank in (0, other)]
        raise ApiValueError("MSC1111", f"init: {'; '.join(rows)}", help="install one environment for all ranks")


def release() -> None:
    """End to communicate."""
    _groups.clear()
    GlobalComm.INITED = False


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process in a group. Raises MSC0895 for a group that there is not, as all below."""
    return get_group_rank_from_world_rank(current_ranks().rank, group)


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The rank of this process among those of its machine."""
    group_of(group, "get_local_rank")
    return _local(0, 0)


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes are in a group."""
    return len(group_ranks(group, "get_group_size"))


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of a group are on this machine."""
    group_of(group, "get_local_rank_size")
    return _local(1, 1)


def _local(number: int, alone: int) -> int:
    texts = [os.environ[name] for name in _LOCAL[number] if name in os.environ] if current_ranks().size > 1 else []
    return int(texts[0]) if texts else alone


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The rank among all processes of one in a group."""
    ranks = group_ranks(group, "get_world_rank_from_group_rank")
    if not isinstance(group_rank_id, int) or isinstance(group_rank_id, bool) or not 0 <= group_rank_id < len(ranks):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refused(f"get_world_rank_from_group_rank: there is no rank {described(group_rank_id)}")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The rank in a group of a process that has another one among all."""
    ranks = group_ranks(group, "get_group_rank_from_world_rank")
    if world_rank_id not in ranks or isinstance(world_rank_id, bool):
        raise refused(f"get_group_rank_from_world_rank: there is no rank {described(world_rank_id)}")
    return ranks.index(world_rank_id)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The ranks of the processes in a group."""
    return list(group_ranks(group, "get_process_group_ranks"))


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the communicator of a group: the group's."""
    return group_of(group, "get_comm_name")


def create_group(group: str, rank_ids: Sequence[int], options: object = None) -> None:
    """Make a group of ranks that there are. Raises MSC0895."""
    if options is not None:
        raise ApiValueError("MSC0895", "create_group: there are no options", help="leave options out")
    if not isinstance(group, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ApiTypeError("MSC0895", f"create_group: group is {described(group)}; it is a name")
    ranks = tuple(rank_ids)
    if not ranks or len(set(ranks)) < len(ranks) or not all(rank in range(current_ranks().size) for rank in ranks):
        raise refused(f"create_group: rank_ids are {described(rank_ids)}", f"create_group('{group}', [0])")
    _groups[group] = ranks


def destroy_group(group: str) -> None:
    """Remove a group. Raises MSC0895 for that of all processes."""
    if group_of(group, "destroy_group") in _WORLD:
        raise ApiValueError("MSC0895", f"destroy_group: '{group}' has all processes and stays", help="release() ends")
    _groups.pop(group, None)


def __getattr__(name: str) -> Any:
    return elsewhere("msc.communication", name, __all__)
