"""Settings of all data sets: the seed of their order, how many threads transform rows, how far they read ahead."""

# Values of user programs are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import enum
import secrets
from collections.abc import Callable
from typing import Any

from msc.dataset.arguments import count, refuse
from msc.frontend import randomness
from msc.frontend.settings import unused

__all__ = [
    "ErrorSamplesMode",
    "get_auto_num_workers",
    "get_auto_offload",
    "get_autotune_interval",
    "get_callback_timeout",
    "get_debug_mode",
    "get_dynamic_shape",
    "get_enable_autotune",
    "get_enable_shared_mem",
    "get_enable_watchdog",
    "get_error_samples_mode",
    "get_fast_recovery",
    "get_monitor_sampling_interval",
    "get_multiprocessing_start_method",
    "get_multiprocessing_timeout_interval",
    "get_num_parallel_workers",
    "get_numa_enable",
    "get_prefetch_size",
    "get_seed",
    "set_auto_num_workers",
    "set_auto_offload",
    "set_autotune_interval",
    "set_callback_timeout",
    "set_debug_mode",
    "set_dynamic_shape",
    "set_enable_autotune",
    "set_enable_shared_mem",
    "set_enable_watchdog",
    "set_error_samples_mode",
    "set_fast_recovery",
    "set_monitor_sampling_interval",
    "set_multiprocessing_start_method",
    "set_multiprocessing_timeout_interval",
    "set_num_parallel_workers",
    "set_numa_enable",
    "set_prefetch_size",
    "set_seed",
]

_LARGEST_SEED = 2**32 - 1


class ErrorSamplesMode(enum.IntEnum):
    """What becomes of a row that cannot be read or mapped: its error, another row in its place, or nothing."""

    RETURN = 0
    REPLACE = 1
    SKIP = 2


class _Settings:
    seed: int | None = None
    workers = 1
    prefetch = 16
    offload = False
    timeout = 60
    on_errors = ErrorSamplesMode.RETURN


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


def set_callback_timeout(timeout: int) -> None:
    """For how many seconds `sync_wait` waits for `sync_update`."""
    _Settings.timeout = count("timeout", timeout)


def get_callback_timeout() -> int:
    """For how many seconds `sync_wait` waits for `sync_update`: 60 unless it was set."""
    return _Settings.timeout


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """What becomes of rows that cannot be read or mapped, from here on. Each is told with its error (MSC1313)."""
    if not isinstance(error_samples_mode, ErrorSamplesMode):  # pyright: ignore[reportUnnecessaryIsInstance]
        refuse("error_samples_mode", error_samples_mode, "a member of ErrorSamplesMode", is_type=True)
    _Settings.on_errors = error_samples_mode


def get_error_samples_mode() -> ErrorSamplesMode:
    """What becomes of rows that cannot be read or mapped: RETURN unless it was set."""
    return _Settings.on_errors


# What MindSpore has and nothing here needs.


def _without_effect(name: str, default: Any) -> tuple[Callable[[Any], None], Callable[[], Any]]:
    kept = [default]

    def change(value: Any) -> None:
        """A setting of MindSpore's that changes nothing here, which is said once. Raises MSC0887."""
        unused(f"dataset.config.set_{name}", **{name: value})
        kept[0] = value

    def ask() -> Any:
        """What was set; MindSpore's default otherwise."""
        return kept[0]

    return change, ask


set_autotune_interval, get_autotune_interval = _without_effect("autotune_interval", 0)
set_auto_num_workers, get_auto_num_workers = _without_effect("auto_num_workers", False)
set_debug_mode, get_debug_mode = _without_effect("debug_mode", False)
set_dynamic_shape, get_dynamic_shape = _without_effect("dynamic_shape", False)
set_enable_autotune, get_enable_autotune = _without_effect("enable_autotune", False)
set_enable_shared_mem, get_enable_shared_mem = _without_effect("enable_shared_mem", True)
set_enable_watchdog, get_enable_watchdog = _without_effect("enable_watchdog", True)
set_fast_recovery, get_fast_recovery = _without_effect("fast_recovery", True)
set_monitor_sampling_interval, get_monitor_sampling_interval = _without_effect("monitor_sampling_interval", 1000)
set_multiprocessing_start_method, get_multiprocessing_start_method = _without_effect(
    "multiprocessing_start_method", "fork"
)
set_multiprocessing_timeout_interval, get_multiprocessing_timeout_interval = _without_effect(
    "multiprocessing_timeout_interval", 300
)
set_numa_enable, get_numa_enable = _without_effect("numa_enable", False)
