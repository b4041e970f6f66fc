"""MindSpore's `runtime`, `hal`, `device_context` and `profiler` where the only device is the CPU of this machine.

Operations are done when a call returns, so that streams and events are in order by themselves. What only concerns
speed or diagnostics says once that it has no effect (MSC0886); what there is not is refused (MSC0896).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any, Self

from msc.frontend import settings
from msc.frontend.boundary import elsewhere
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.modes import get_context, set_context
from msc.support import processors
from msc.support.argument_values import described

__all__ = [
    "AicoreMetrics", "DeviceCtx", "DynamicProfilerMonitor", "Event", "ExportType", "Profiler", "ProfilerActivity",
    "ProfilerLevel", "Stream", "StreamCtx", "ascend", "communication_stream", "cpu", "current_stream",
    "default_stream", "device_count", "dispatch_threads_num", "empty_cache", "get_arch_list", "get_current_device",
    "get_device_capability", "get_device_name", "get_device_properties", "gpu", "is_available", "is_initialized",
    "launch_blocking", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_summary", "mstx", "profile", "reset_max_memory_allocated", "reset_max_memory_reserved",
    "reset_peak_memory_stats", "schedule", "set_cpu_affinity", "set_cur_stream", "set_deterministic", "set_device",
    "set_memory", "set_recursion_limit", "synchronize", "tensorboard_trace_handler",
]  # fmt: skip

_TARGETS = ("CPU", "Ascend", "GPU")


def _without_effect(call: str, reason: str) -> None:
    settings.tell_once((call, ""), "MSC0886", f"{call} has no effect", note=reason)


def _target_of(function: str, target: object) -> str:
    """The kind of a device. Raises MSC0896."""
    named = get_context("device_target") if target is None else target
    if named not in _TARGETS:
        raise ApiValueError("MSC0896", f"{function}: {described(target)} is no device", help="'CPU' is one")
    return named


def _own(function: str, device_id: object) -> None:
    if device_id not in (0, None):
        raise ApiValueError("MSC0896", f"{function}: there is no device {described(device_id)}", help="there is 0")


# Devices.


def set_device(device_target: str, device_id: int | None = None) -> None:
    """As `set_context(device_target=..., device_id=...)`. Raises MSC0896."""
    _target_of("set_device", device_target)
    _own("set_device", device_id)
    set_context(device_target=device_target)


def get_current_device() -> DeviceCtx:
    """The device that was set."""
    return DeviceCtx(get_context("device_target"), 0)


class DeviceCtx:
    """A device: its kind and its number. Raises MSC0896."""

    def __init__(self, name: str, device_id: int | None = None) -> None:
        _own("DeviceCtx", device_id)
        self.device_target, self.device_id = _target_of("DeviceCtx", name), 0

    def __iter__(self) -> Any:
        return iter((self.device_target, self.device_id))

    def __repr__(self) -> str:
        return repr((self.device_target, self.device_id))


def device_count(device_target: str | None = None) -> int:
    """How many devices of a kind there are: one CPU."""
    return int(_target_of("device_count", device_target) == "CPU")


def is_available(device_target: str) -> bool:
    """Whether there is a device of a kind."""
    return _target_of("is_available", device_target) == "CPU"


def is_initialized(device_target: str) -> bool:
    """Whether a device can be used: the CPU always can."""
    return is_available(device_target)


def get_arch_list(device_target: str | None = None) -> None:
    """The architectures that kernels were built for: None, as for MindSpore's CPU."""
    _target_of("get_arch_list", device_target)


def get_device_name(device_id: int = 0, device_target: str | None = None) -> str:
    """What a device is called."""
    _own("get_device_name", device_id)
    return _target_of("get_device_name", device_target)


def get_device_capability(device_id: int = 0, device_target: str | None = None) -> None:
    """What a device is capable of: None, as for MindSpore's CPU."""
    get_device_name(device_id, device_target)


def get_device_properties(device_id: int = 0, device_target: str | None = None) -> None:
    """The properties of a device: None, as for MindSpore's CPU."""
    get_device_name(device_id, device_target)


def set_deterministic(deterministic: bool) -> None:
    """Results are deterministic in any case. Raises MSC0896 for what is no bool."""
    if type(deterministic) is not bool:
        raise ApiTypeError("MSC0896", f"set_deterministic takes True or False, not {described(deterministic)}")


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """How deep functions may call each other: Python's own limit, which is raised to this. Raises MSC0896."""
    if type(recursion_limit) is not int or recursion_limit < 1:
        raise ApiValueError(
            "MSC0896", f"set_recursion_limit takes a positive integer, not {described(recursion_limit)}"
        )
    sys.setrecursionlimit(max(sys.getrecursionlimit(), recursion_limit))


# What the run-time system does.


def set_memory(
    init_size: str = "2GB",
    increase_size: str = "2GB",
    max_size: str = "1024GB",
    optimize_level: str = "O0",
    huge_page_reserve_size: str = "0GB",
) -> None:
    """No effect: memory is planned when a graph is compiled."""
    sizes = init_size, increase_size, max_size, huge_page_reserve_size
    given: tuple[object, ...] = sizes
    if not all(type(size) is str for size in given) or optimize_level not in ("O0", "O1"):
        raise ApiValueError("MSC0896", f"set_memory: sizes are texts as '2GB', not {described(sizes)}")
    _without_effect("set_memory", "memory is planned when a graph is compiled")


def set_cpu_affinity(
    enable_affinity: bool,
    affinity_cpu_list: Any = None,
    module_to_cpu_dict: Any = None,
    bind_file: str | None = None,
) -> None:
    """No effect: `taskset` and `os.sched_setaffinity` choose processors."""
    if enable_affinity or affinity_cpu_list or module_to_cpu_dict or bind_file:
        _without_effect("set_cpu_affinity", "taskset and os.sched_setaffinity choose processors")


def dispatch_threads_num(threads_num: int) -> None:
    """No effect: operations run where they are called."""
    settings.unused("dispatch_threads_num", runtime_num_threads=threads_num)


def launch_blocking() -> None:
    """No effect: operations are done when a call returns."""


def synchronize() -> None:
    """Wait until everything is done, which it is."""


def empty_cache() -> None:
    """Give memory back that nothing uses: the system has it already."""


def memory_allocated(device_target: str | None = None) -> int:
    """Bytes that this process has in memory; so say all of these functions of a device, which is the machine."""
    _target_of("memory_allocated", device_target)
    return processors.resident_bytes()


def max_memory_allocated(device_target: str | None = None) -> int:
    """The most bytes that this process had in memory."""
    _target_of("max_memory_allocated", device_target)
    return processors.peak_bytes()


def memory_reserved(device_target: str | None = None) -> int:
    """As `memory_allocated`."""
    return memory_allocated(device_target)


def max_memory_reserved(device_target: str | None = None) -> int:
    """As `max_memory_allocated`."""
    return max_memory_allocated(device_target)


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """The figures of memory by MindSpore's names."""
    now, most = memory_allocated(device_target), max_memory_allocated(device_target)
    names = ("total_reserved_memory", "total_allocated_memory", "max_reserved_memory", "max_allocated_memory")
    return {**dict(zip(names, (now, now, most, most), strict=True)), "total_idle_memory": 0}


def memory_summary(device_target: str | None = None) -> str:
    """The figures of memory as a table."""
    return "\n".join(f"{name:<24}{value:>16} B" for name, value in memory_stats(device_target).items())


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """No effect: the system counts the most that a process had from its beginning."""
    _target_of("reset_peak_memory_stats", device_target)
    _without_effect("reset_peak_memory_stats", "the system counts from the beginning of the process")


reset_max_memory_allocated = reset_max_memory_reserved = reset_peak_memory_stats


class Stream:
    """Operations in order: there is one such order, and what is in it is done."""

    def __init__(self, priority: int = 0, **options: Any) -> None:
        self.priority, self.options = priority, options

    def query(self) -> bool:
        """Whether everything is done."""
        return True

    def synchronize(self) -> None:
        """Wait until everything is done."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this time."""
        made = event or Event(enable_timing=True)
        made.record(self)
        return made

    def wait_event(self, event: Event) -> None:
        """Wait for an event, which has happened. Raises MSC0896."""
        if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0896", f"wait_event takes an Event, not {described(event)}")

    def wait_stream(self, stream: Stream) -> None:
        """Wait for what is in another stream, which is done. Raises MSC0896."""
        if not isinstance(stream, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiTypeError("MSC0896", f"wait_stream takes a Stream, not {described(stream)}")


class Event:
    """A time in a stream."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing, self.blocking = enable_timing, blocking
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Now: all that was called before is done."""
        (stream or _STREAM).synchronize()
        self._time = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Wait for the event, which has happened."""
        (stream or _STREAM).synchronize()

    def query(self) -> bool:
        """Whether it has happened."""
        return True

    def synchronize(self) -> None:
        """Wait for the event."""

    def elapsed_time(self, other_event: Event) -> float:
        """Milliseconds from this event to another one. Raises MSC0896 if either was not recorded."""
        if self._time is None or other_event._time is None:
            raise ApiValueError("MSC0896", "elapsed_time: an event was not recorded", help="event.record() does")
        return (other_event._time - self._time) * 1e3


_STREAM = Stream()


class StreamCtx:
    """The operations of a block in a stream: they are done in their order."""

    def __init__(self, ctx_stream: Stream | None) -> None:
        self.stream = ctx_stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def current_stream() -> Stream:
    """The only stream."""
    return _STREAM


default_stream = communication_stream = current_stream


def set_cur_stream(stream: Stream) -> None:
    """Let operations be in a stream: they are done in their order. Raises MSC0896."""
    _STREAM.wait_stream(stream)


class _Options:
    """The settings of a kind of device, under MindSpore's paths: `cpu.op_tuning.threads_num(4)`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> _Options:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Options(f"{self._path}.{name}")

    def __call__(self, *values: Any, **named: Any) -> Any:
        last = self._path.rpartition(".")[2]
        kind = self._path.split(".")[1]
        functions: dict[str, Callable[[], Any]] = {
            "device_count": lambda: int(kind == "cpu"),
            "is_available": lambda: kind == "cpu",
        }
        if last in functions:
            return functions[last]()
        if values or named:
            _without_effect(self._path, "graphs are always optimised as far as msc can, on the CPU")
        return None


cpu, ascend, gpu = (_Options(f"device_context.{name}") for name in ("cpu", "ascend", "gpu"))


# Profiling.


class ProfilerLevel(Enum):
    """How much is to be measured."""

    LevelNone, Level0, Level1, Level2 = "LevelNone", "Level0", "Level1", "Level2"


class ProfilerActivity(Enum):
    """What is to be measured."""

    CPU, NPU, GPU = "CPU", "NPU", "GPU"


class AicoreMetrics(Enum):
    """Counters of an NPU."""

    AiCoreNone, PipeUtilization, ArithmeticUtilization, Memory = "None", "PipeUtilization", "Arithmetic", "Memory"


class ExportType(Enum):
    """The form of a report."""

    Text, Db = "text", "db"


class Profiler:
    """No effect: `msc bench --kernels` measures the kernels of a model, and Python's profilers the rest."""

    def __init__(self, **kwargs: Any) -> None:
        self.options = kwargs
        _without_effect(
            type(self).__name__, "`msc bench --kernels` measures kernels, `--trace FILE` writes their times"
        )

    def start(self) -> None:
        """No effect."""

    def stop(self) -> None:
        """No effect."""

    def step(self) -> None:
        """No effect."""

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text under a name."""
        self.options[key] = value

    add_metadata_json = add_metadata

    def analyse(self, offline_path: str | None = None, **options: Any) -> None:
        """No effect: nothing was recorded."""
        self.options.update(options, offline_path=offline_path)

    def op_analyse(self, op_name: Any, device_id: int | None = None) -> str:
        """Nothing was recorded: an empty table."""
        _own("op_analyse", device_id)
        return f"[] of {op_name}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class profile(Profiler):
    """As `Profiler`."""


class DynamicProfilerMonitor(Profiler):
    """As `Profiler`."""


def schedule(*, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> SimpleNamespace:
    """When a profiler is to measure."""
    return SimpleNamespace(wait=wait, active=active, warmup=warmup, repeat=repeat, skip_first=skip_first)


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False
) -> Callable[[], None]:
    """What would write the record of a profiler, of which there is none."""
    if dir_name or worker_name or not analyse_flag or async_mode:
        _without_effect("tensorboard_trace_handler", "`msc bench --trace FILE` writes the times of kernels")
    return lambda: None


class mstx:
    """Marks for a profiler: no effect."""

    @staticmethod
    def mark(message: str, stream: Stream | None = None, domain: str = "default") -> None:
        """No effect."""
        settings.unused("mstx.mark", message=message, stream=stream, domain=domain)

    @staticmethod
    def range_start(message: str, stream: Stream | None = None, domain: str = "default") -> int:
        """No effect."""
        mstx.mark(message, stream, domain)
        return 0

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        """No effect."""
        if range_id or not domain:
            raise ApiValueError("MSC0896", f"range_end: there is no range {range_id} of {domain!r}")


def __getattr__(name: str) -> Any:
    return elsewhere("MindSpore's modules of devices", name, __all__)
