"""Settings of all data sets: the seed of their order, how many threads transform rows, how far they read ahead."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import secrets

from msc.dataset.arguments import count, refuse
from msc.frontend import randomness

__all__ = [
    "get_auto_offload",
    "get_num_parallel_workers",
    "get_prefetch_size",
    "get_seed",
    "set_auto_offload",
    "set_num_parallel_workers",
    "set_prefetch_size",
    "set_seed",
]

_LARGEST_SEED = 2**32 - 1


class _Settings:
    seed: int | None = None
    workers = 1
    prefetch = 16
    offload = False


def set_seed(seed: int) -> None:
    """Orders and random transforms are those of this seed from here on. `msc.set_seed` does the same, for all else too.

    Raises MSC0871 for what is not an integer from 0 to 2^32 - 1.
    """
    number = count("seed", seed, 0)
    if number > _LARGEST_SEED:
        refuse("seed", number, "an integer below 2^32")
    _Settings.seed = number


def get_seed() -> int | None:
    """The seed that was set here, that of `msc.set_seed` otherwise, or None."""
    return randomness.get_seed() if _Settings.seed is None else _Settings.seed


def seed_of_a_run() -> int:
    """The seed that was set, or one that nobody knows."""
    seed = get_seed()
    return secrets.randbits(32) if seed is None else seed


def set_num_parallel_workers(num: int) -> None:
    """How many threads `map` uses where a call says nothing."""
    _Settings.workers = count("num", num)


def get_num_parallel_workers() -> int:
    """How many threads `map` uses where a call says nothing: 1 unless it was set."""
    return _Settings.workers


def set_prefetch_size(size: int) -> None:
    """How many rows or batches an iterator reads ahead."""
    _Settings.prefetch = count("size", size)


def get_prefetch_size() -> int:
    """How many rows or batches an iterator reads ahead: 16 unless it was set."""
    return _Settings.prefetch


def set_auto_offload(offload: bool) -> None:
    """Whether `map` compiles transforms with the first batch where a call says nothing, not only once that pays."""
    if not isinstance(offload, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("offload", offload, "True or False", is_type=True)
    _Settings.offload = offload


def get_auto_offload() -> bool:
    """Whether `map` compiles transforms with the first batch: False unless it was set."""
    return _Settings.offload
