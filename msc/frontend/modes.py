"""The switch between PyNative and graph mode, and the other settings of `msc.set_context`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, cast

from msc.frontend.errors import ApiValueError
from msc.frontend.settings import tell_once, unused
from msc.support.diagnostics import did_you_mean

GRAPH_MODE, PYNATIVE_MODE = 0, 1

_DEFAULTS: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "device_id": 0,
    "save_graphs": False,
    "save_graphs_path": ".",
    "enable_graph_kernel": False,
    "graph_kernel_flags": "",
    "jit_level": "O1",
    "jit_config": {},
    "deterministic": "ON",
    "pynative_synchronize": True,
    "max_call_depth": 1000,
    "runtime_num_threads": 0,
    "reserve_class_name_in_scope": True,
    "enable_compile_cache": True,
    "compile_cache_path": "",
    "precompile_only": False,
    "max_device_memory": "",
    "variable_memory_max_size": "",
    "mempool_block_size": "",
    "enable_reduce_precision": False,
    "enable_profiling": False,
    "profiling_options": "",
    "check_bprop": False,
    "print_file_path": "",
    "env_config_path": "",
    "grad_for_scalar": False,
    "support_binary": False,
    "memory_optimize_level": "O0",
    "ascend_config": {},
    "gpu_config": {},
    "op_timeout": 0,
    "aoe_tune_mode": "",
    "auto_tune_mode": "",
    "inter_op_parallel_num": 0,
    "exec_order": "",
    "save_compile_cache": True,
    "load_compile_cache": True,
    "enable_sparse": False,
    "enable_dump": False,
    "save_dump_path": ".",
}
"""The settings that MindSpore knows; msc keeps all, so that programs run, and acts on the mode, device and threads."""

TOLD_INPUTS = "_told_inputs"
"""Of a Cell: what describes its arguments, whose open sizes are known before the first call."""

RECOMPUTES = "_recomputes"
"""Of a Cell: whether its activations are computed again for the gradient."""

_CHOICES: dict[str, Sequence[Any]] = {
    "mode": (GRAPH_MODE, PYNATIVE_MODE),
    "device_target": ("CPU", "Ascend", "GPU"),
}

_OF_COMPILATIONS = ("device_target", "runtime_num_threads")
"""What graphs are compiled for."""
_MOST_THREADS = 1024

FORGETTING: list[Callable[[], None]] = []
"""What forgets graphs that were compiled, as they are for another device or number of threads."""

_settings: dict[str, Any] = dict(_DEFAULTS)


INTERPRETER = "interpreter"
"""Of `jit`: what runs graphs without compiling them; it starts faster, and tests compare with it."""


_DEVICES: Mapping[str, str] = {"Ascend": "ascend910b1"}
"""The target of each `device_target` but the CPU's, which is what is compiled for by default."""


@dataclass(frozen=True)
class Wishes:
    """What `jit` says about its graphs; what it leaves out is as the context says.

    `backend` is "" for compiled code, or the interpreter; `target`, `threads` and `march` are those of `msc.compile`.
    """

    backend: str = ""
    target: str | None = None
    threads: int | None = None
    march: str | None = None

    def options(self) -> dict[str, Any]:
        """The arguments of `msc.compile` for a graph that is compiled now."""
        device = _DEVICES.get(get_context("device_target"))
        threads = get_context("runtime_num_threads") or None if self.threads is None else self.threads
        given = {"target": self.target or device, "threads": threads, "march": self.march}
        return {name: value for name, value in given.items() if value is not None}


class CellLike(Protocol):
    """What a hook may ask of a Cell."""

    def construct(self, *args: Any, **kwargs: Any) -> Any: ...


def _call_cell(cell: CellLike, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Loads what captures and compiles: not before the first call in graph mode."""
    from msc.frontend.jit import call_cell

    Hooks.call_cell = staticmethod(call_cell)
    return call_cell(cell, args, kwargs)


def _recompute(run: Callable[[], Any], mode: bool) -> Any:
    from msc.frontend.transforms.recomputed import call_recomputed

    Hooks.recompute = staticmethod(call_recomputed)
    return call_recomputed(run, mode)


def _with_bprop(run: Callable[..., Any], bprop: Callable[..., Any] | None, args: tuple[Any, ...], name: str) -> Any:
    from msc.frontend.transforms.custom import with_bprop

    Hooks.with_bprop = staticmethod(with_bprop)
    return with_bprop(run, bprop, args, name)


class Hooks:
    """What is installed when it is first used, as it loads what captures and compiles.

    `call_cell` runs a Cell that is called, in graph mode or under capture. `recompute` runs a function whose
    activations are computed again for the gradient, or stored without the mode. `with_bprop` runs one that says its
    gradient itself, or has none.
    """

    call_cell: Callable[[CellLike, tuple[Any, ...], Mapping[str, Any]], Any] | None = staticmethod(_call_cell)
    recompute: Callable[[Callable[[], Any], bool], Any] = staticmethod(_recompute)
    with_bprop: Callable[[Callable[..., Any], Callable[..., Any] | None, tuple[Any, ...], str], Any] = staticmethod(
        _with_bprop
    )


class Context:
    """Settings that were changed; as a context manager they go back at the end of the block."""

    def __init__(self, before: Mapping[str, Any]) -> None:
        self._before = dict(before)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _change(self._before)


def set_context(**settings: Any) -> Context:
    """Change settings, as `set_context(mode=msc.GRAPH_MODE)`; in a `with` statement, for its block only.

    Raises MSC0814 for a setting that there is not, or a value that it cannot have, and MSC0887. A setting that does
    nothing here says so once.
    """
    for name, value in settings.items():
        if name not in _DEFAULTS:
            raise ApiValueError("MSC0814", f"there is no setting '{name}'", help=did_you_mean(name, _DEFAULTS))
        if name in _CHOICES and value not in _CHOICES[name]:
            words = ", ".join(map(repr, _CHOICES[name]))
            advice = "msc.PYNATIVE_MODE runs operations one by one, msc.GRAPH_MODE compiles" if name == "mode" else None
            raise ApiValueError("MSC0814", f"set_context: {name} is {value!r}, not one of {words}", help=advice)
        if name == "device_target" and value == "Ascend":
            said = "device_target='Ascend': graphs run on a simulated Ascend 910B1, which takes long"
            tell_once(("set_context", name), "MSC0581", said, note="operations of PyNative mode run on the CPU")
        if name == "runtime_num_threads" and not _is_number(value, _MOST_THREADS):
            raise ApiValueError(
                "MSC0814", f"set_context: {name} is {value!r}; it is 0 (as msc chooses, 1) to {_MOST_THREADS}"
            )
        if name not in ("mode", "runtime_num_threads"):
            unused("set_context", **{name: value})
        if name == "jit_config" and isinstance(value, dict):
            unused("set_context", **{k: v for k, v in cast(dict[str, Any], value).items() if k in _DEFAULTS})
    before = {name: _settings[name] for name in settings}
    _change(settings)
    return Context(before)


def _is_number(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _change(settings: Mapping[str, Any]) -> None:
    """Change settings; what was compiled for others is forgotten, so that calls need not look at them."""
    is_other = any(_settings[name] != settings.get(name, _settings[name]) for name in _OF_COMPILATIONS)
    _settings.update(settings)
    if is_other:
        for forget in FORGETTING:
            forget()


def get_context(attr_key: str) -> Any:
    """The value of a setting. Raises MSC0814."""
    if attr_key not in _settings:
        raise ApiValueError("MSC0814", f"there is no setting '{attr_key}'", help=did_you_mean(attr_key, _DEFAULTS))
    return _settings[attr_key]


def reset_context() -> None:
    """All settings as they are at the start."""
    _change(_DEFAULTS)


def in_graph_mode() -> bool:
    """Whether Cells are compiled when they are called."""
    return _settings["mode"] == GRAPH_MODE
