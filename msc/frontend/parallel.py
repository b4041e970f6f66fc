"""MindSpore's `parallel`: how training is shared among the processes that there are; what needs others is refused.

In the modes `data_parallel` and `hybrid_parallel` a training step takes the gradients of all ranks together
(`taken_together`): each rank runs its own program. In `semi_auto_parallel` and `auto_parallel` graphs are those of all
ranks, and each rank runs its part (`msc/frontend/sharing.py`); PyNative mode takes gradients together there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from msc.dialects.ranks import current_ranks
from msc.frontend.capture import INSTALLED
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.modes import FORGETTING
from msc.frontend.process_group import refused
from msc.frontend.settings import unused
from msc.support.argument_values import described
from msc.support.diagnostics import did_you_mean

__all__ = [
    "Layout", "ParallelMode", "build_searched_strategy", "get_algo_parameters", "get_auto_parallel_context",
    "get_ps_context", "load_distributed_checkpoint", "merge_sliced_parameter", "parameter_broadcast",
    "reset_algo_parameters", "reset_auto_parallel_context", "reset_ps_context", "set_algo_parameters",
    "set_auto_parallel_context", "set_ps_context", "shard", "sync_pipeline_shared_parameters",
]  # fmt: skip

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class ParallelMode:
    """How training is shared among devices. With one device all modes are the same."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_DEFAULTS: dict[str, Any] = {
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "loss_repeated_mean": True,
    "parallel_mode": ParallelMode.STAND_ALONE,
    "auto_parallel_search_mode": "recursive_programming",
    "search_mode": "recursive_programming",
    "parameter_broadcast": False,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "force_fp32_communication": False,
    "enable_alltoall": False,
    "all_reduce_fusion_config": [],
    "pipeline_stages": 1,
    "pipeline_result_broadcast": False,
    "grad_accumulation_step": 1,
    "parallel_optimizer_config": {},
    "comm_fusion": {},
    "pipeline_config": {},
    "strategy_ckpt_config": {},
    "group_ckpt_save_file": "",
    "communi_parallel_mode": "all_group_parallel",
    "optimizer_weight_shard_size": -1,
    "optimizer_weight_shard_aggregated_save": False,
    "sharding_propagation": False,
    "mesh": "",
}
"""The settings of MindSpore. What they say of communication has no meaning in one process, and changes nothing."""

_ALONE: dict[str, Any] = {
    "device_num": 1,
    "global_rank": 0,
    "pipeline_stages": 1,
    "grad_accumulation_step": 1,
}
"""Settings whose other values need more devices, or change what is computed or written."""

_PARAMETERS: dict[str, Any] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}
_SERVER: dict[str, Any] = {"enable_ps": False, "config_file_path": "", "enable_ssl": False}

_settings, _parameters, _server = dict(_DEFAULTS), dict(_PARAMETERS), dict(_SERVER)


def _change(function: str, settings: dict[str, Any], known: dict[str, Any], given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in known:
            raise ApiValueError("MSC0895", f"{function}: there is no '{name}'", help=did_you_mean(name, known))
        default: object = known[name]
        if not isinstance(value, type(default)) and not (name == "dataset_strategy" and isinstance(value, tuple)):
            raise ApiTypeError("MSC0895", f"{function}: {name} is {described(value)}, not as {known[name]!r}")
    settings.update(given)


def _found(function: str, settings: dict[str, Any], name: str) -> Any:
    if name not in settings:
        raise ApiValueError("MSC0895", f"{function}: there is no '{name}'", help=did_you_mean(name, settings))
    return settings[name]


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Keep how training is to be shared among devices. Raises MSC0895 for what needs more than one."""
    there = {**_ALONE, "device_num": current_ranks().size, "global_rank": current_ranks().rank}
    for name, value in kwargs.items():
        if name == "device_num" and current_ranks().size == 1:
            unused("set_auto_parallel_context", device_num=value)
            continue
        if name in there and type(value) is type(there[name]) and value not in (there[name], _ALONE[name]):
            raise refused(f"set_auto_parallel_context: {name}={described(value)}", f"leave {name} out")
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode not in ParallelMode.MODE_LIST:
        words = ", ".join(map(repr, ParallelMode.MODE_LIST))
        raise ApiValueError("MSC0895", f"set_auto_parallel_context: parallel_mode is {described(mode)}, not {words}")
    _change("set_auto_parallel_context", _settings, _DEFAULTS, kwargs)
    for forget in FORGETTING:
        forget()


def is_distributed() -> bool:
    """Whether several ranks train one network."""
    return current_ranks().size > 1 and _settings["parallel_mode"] != ParallelMode.STAND_ALONE


def is_partitioned() -> bool:
    """Whether graphs are those of all ranks, of which each runs its part."""
    modes = (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)
    return current_ranks().size > 1 and _settings["parallel_mode"] in modes


def shares_gradients() -> bool:
    """Whether training steps take the gradients of several ranks together: not those of a graph of all ranks."""
    return is_distributed() and not (is_partitioned() and INSTALLED.builder is not None)


def mesh_text() -> str:
    """The mesh of the ranks: as `set_auto_parallel_context(mesh="dp=2,tp=2")` says, or data parallel."""
    return _settings["mesh"] or f"dp={current_ranks().size}"


def optimizer_level() -> int:
    """What optimizer-parallel ranks share: 0 nothing, 1 and 2 states (and the gradients for them), 3 weights too."""
    level = _settings["parallel_optimizer_config"].get("optimizer_level", "level1")
    return int(str(level)[-1]) if _settings["enable_parallel_optimizer"] else 0


def least_shared() -> int:
    """Bytes of a parameter below which optimizer-parallel ranks all keep it whole."""
    return int(_settings["parallel_optimizer_config"].get("parallel_optimizer_threshold", 64)) << 10


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of a setting. Raises MSC0895."""
    return _found("get_auto_parallel_context", _settings, attr_key)


def reset_auto_parallel_context() -> None:
    """All settings as they are at the start."""
    _settings.update(_DEFAULTS)


def set_algo_parameters(**kwargs: Any) -> None:
    """Keep how a strategy is to be searched for; one device needs none. Raises MSC0895."""
    _change("set_algo_parameters", _parameters, _PARAMETERS, kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """The value of a setting of the search. Raises MSC0895."""
    return _found("get_algo_parameters", _parameters, attr_key)


def reset_algo_parameters() -> None:
    """The settings of the search as they are at the start."""
    _parameters.update(_PARAMETERS)


def set_ps_context(**kwargs: Any) -> None:
    """Keep the settings of parameter servers, which there are none of. Raises MSC0895."""
    if kwargs.get("enable_ps"):
        raise refused("set_ps_context: enable_ps=True asks for parameter servers", "leave it out")
    _change("set_ps_context", _server, _SERVER, kwargs)


def get_ps_context(attr_key: str) -> Any:
    """The value of a setting of parameter servers. Raises MSC0895."""
    return _found("get_ps_context", _server, attr_key)


def reset_ps_context() -> None:
    """The settings of parameter servers as they are at the start."""
    _server.update(_SERVER)


class Layout:
    """Devices as a matrix with names for its axes; there is one device. Raises MSC0895."""

    def __init__(
        self, device_matrix: Sequence[int], alias_name: Sequence[str], rank_list: Sequence[int] | None = None
    ) -> None:
        if any(n != 1 for n in device_matrix) or list(rank_list or [0]) != [0]:
            raise refused(f"Layout: device_matrix is {described(device_matrix)}", "all sizes are 1")
        self.device_matrix, self.alias_name = tuple(device_matrix), tuple(alias_name)

    def __call__(self, *tensor_map: Any) -> Layout:
        """How the axes of a tensor lie on the devices: whole."""
        self.tensor_map = tensor_map
        return self


def _is_whole(strategy: Any) -> bool:
    if isinstance(strategy, tuple | list):
        return all(map(_is_whole, strategy))  # pyright: ignore[reportUnknownArgumentType]
    return strategy is None or strategy == 1 or isinstance(strategy, Layout)


def shard(fn: FunctionT, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> FunctionT:
    """The function itself: on one device nothing is shared. Raises MSC0895 for strategies with other sizes than 1."""
    for name, strategy in (("in_strategy", in_strategy), ("out_strategy", out_strategy)):
        if not _is_whole(strategy):
            raise refused(f"shard: {name} is {described(strategy)}", "all sizes are 1")
    if parameter_plan and not all(map(_is_whole, parameter_plan.values())):
        raise refused(f"shard: parameter_plan is {described(parameter_plan)}", "all sizes are 1")
    return fn


def sync_pipeline_shared_parameters(net: Any) -> None:
    """Share parameters among the stages of a pipeline: there is one, which has them. Raises MSC0895."""
    if not hasattr(net, "get_parameters"):
        raise ApiTypeError("MSC0895", f"sync_pipeline_shared_parameters takes a Cell, not {described(net)}")


def parameter_broadcast(net: Any, layout: Any, cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Give parameters to other devices, of which there are none. Raises MSC0895."""
    if cur_rank or initial_rank or not hasattr(net, "get_parameters") or layout is None:
        raise refused(f"parameter_broadcast: cur_rank is {cur_rank}, initial_rank {initial_rank}", "both are 0")


_ONE_FILE = "load_checkpoint and load_param_into_net read the checkpoint of one process"


def load_distributed_checkpoint(network: Any, checkpoint_filenames: Any = None, **options: Any) -> NoReturn:
    """Raises MSC0895: checkpoints of several processes are not read."""
    what = f"load_distributed_checkpoint of {len(checkpoint_filenames or ())} files into {type(network).__name__}"
    raise refused(what + (f" ({', '.join(options)})" if options else ""), _ONE_FILE)


def build_searched_strategy(strategy_filename: str) -> NoReturn:
    """Raises MSC0895: there are no files of strategies."""
    raise refused(f"build_searched_strategy: {described(strategy_filename)}", _ONE_FILE)


def merge_sliced_parameter(sliced_parameters: Sequence[Any], strategy: Any = None) -> Any:
    """The only slice: a parameter of one process is whole. Raises MSC0895."""
    if strategy or len(sliced_parameters) != 1:
        raise refused(f"merge_sliced_parameter of {len(sliced_parameters)} slices", _ONE_FILE)
    return sliced_parameters[0]
