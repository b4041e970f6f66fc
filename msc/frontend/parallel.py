"""MindSpore's `parallel`: how training is shared among the processes that there are; what needs others is refused.

In the modes `data_parallel` and `hybrid_parallel` a training step takes the gradients of all ranks together
(`taken_together`): each rank runs its own program. In `semi_auto_parallel` and `auto_parallel` graphs are those of all
ranks, and each rank runs its part (`msc/frontend/sharing.py`); PyNative mode takes gradients together there, too.
"""

# What programs give as strategies is of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import prod
from typing import Any, NoReturn, TypeAlias, TypeVar, cast

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
    "cluster": "host-8",
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
        if name == "pipeline_stages" and isinstance(value, int) and value > 0 and current_ranks().size % value == 0:
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


def searches() -> bool:
    """Whether graphs of all ranks are cut as a search finds, where users do not say how."""
    return is_partitioned() and _settings["parallel_mode"] == ParallelMode.AUTO_PARALLEL


def shares_gradients() -> bool:
    """Whether training steps take the gradients of several ranks together: not those of a graph of all ranks."""
    return is_distributed() and not (is_partitioned() and INSTALLED.builder is not None)


def has_stages() -> bool:
    """Whether graphs are those of a pipeline of several stages."""
    return is_partitioned() and _settings["pipeline_stages"] > 1


def ranks_of_a_stage() -> int:
    """How many ranks share each stage of a pipeline: all, if there is one stage."""
    return current_ranks().size // _settings["pipeline_stages"]


def mesh_text() -> str:
    """The mesh of the ranks of a stage: as `set_auto_parallel_context(mesh="dp=2,tp=2")` says, or data parallel."""
    return _settings["mesh"] or f"dp={ranks_of_a_stage()}"


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
    """Devices as a matrix with names for its axes; called with names, how the dimensions of a tensor lie on them.

    `Layout((2, 2, 2), ("dp", "sp", "mp"))("mp", ("sp", "dp"), "None")` cuts dimension 0 along mp, dimension 1 along sp
    and then dp, and leaves dimension 2 whole. Raises MSC0895 for axes that are none.
    """

    def __init__(
        self, device_matrix: Sequence[int], alias_name: Sequence[str], rank_list: Sequence[int] | None = None
    ) -> None:
        sizes, names = tuple(device_matrix), tuple(alias_name)
        if len(sizes) != len(names) or len(set(names)) < len(names) or not all(map(_is_size, sizes)):
            raise ApiValueError("MSC0895", f"Layout: {described(names)} do not name the axes of {described(sizes)}")
        if not all(isinstance(name, str) and name.isidentifier() and name != "None" for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApiValueError("MSC0895", f"Layout: {described(names)} are not all names, as in ('dp', 'mp')")
        if rank_list is not None and list(rank_list) != list(range(prod(sizes))):
            raise refused(f"Layout: rank_list is {described(rank_list)}", "leave it out: ranks are in their order")
        self.device_matrix, self.alias_name = sizes, names
        self.tensor_map: tuple[str | tuple[str, ...], ...] | None = None

    def __call__(self, *tensor_map: Any) -> Layout:
        """The matrix with the axes of each dimension of a tensor, "None" for none."""
        entries = [entry if isinstance(entry, tuple) else (entry,) for entry in tensor_map]
        used: list[Any] = [name for entry in entries for name in entry if name != "None"]
        for name in used:
            if name not in self.alias_name or used.count(name) > 1:
                message = f"Layout: {described(tensor_map)} names {described(name)}, each axis once: {self.alias_name}"
                raise ApiValueError("MSC0895", message)
        laid = copy(self)
        laid.tensor_map = tensor_map
        return laid

    def __len__(self) -> int:
        """The number of the tensor's dimensions."""
        return len(self.tensor_map or ())

    @property
    def mesh(self) -> str:
        """The matrix as the text of a mesh."""
        return ",".join(f"{name}={size}" for name, size in zip(self.alias_name, self.device_matrix, strict=True))

    def __str__(self) -> str:
        entries = [entry if isinstance(entry, tuple) else (entry,) for entry in self.tensor_map or ()]
        cuts = [".".join(name for name in entry if name != "None") or "_" for entry in entries]
        return f"{self.mesh} [{', '.join(cuts)}]"

    def to_dict(self) -> dict[str, Any]:
        """What the layout says, as MindSpore writes it: axes are counted from the right. Raises MSC0895."""
        if self.tensor_map is None:
            raise ApiValueError("MSC0895", "Layout.to_dict: call the layout first, with an axis for each dimension")

        def number(entry: Any) -> Any:
            if isinstance(entry, tuple):
                return tuple(map(number, entry))
            return -1 if entry == "None" else len(self.alias_name) - 1 - self.alias_name.index(entry)

        return {
            "device_matrix": self.device_matrix, "tensor_map": tuple(map(number, self.tensor_map)),
            "interleaved_parallel": False, "alias_name": self.alias_name,
            "rank_list": list(range(prod(self.device_matrix))),
        }  # fmt: skip


def _is_size(value: object) -> bool:
    return type(value) is int and value > 0


Row: TypeAlias = "tuple[int, ...] | Layout"
"""Into how many parts each dimension of a tensor is cut, or along which axes."""


def checked_strategy(function: str, name: str, strategy: Any) -> None:
    """Raises MSC0887 for what says no cut: a strategy has for each tensor a tuple of integers, a `Layout` or None."""
    rows: Any = strategy if isinstance(strategy, tuple) else (strategy,)
    good = all(
        row is None or (isinstance(row, Layout) and row.tensor_map is not None)
        or (isinstance(row, tuple) and all(map(_is_size, row)))
        for row in rows
    )  # fmt: skip
    if strategy is not None and not (isinstance(strategy, tuple) and good):
        message = f"{function}: {name} is {described(strategy)}; it is a tuple of tuples of integers, or of layouts"
        raise ApiTypeError("MSC0887", message, help="as ((2, 1), (1, 4)), or (layout('dp', 'mp'),)")
    if current_ranks().size == 1:
        unused(function, **{name: strategy})


def laid(value: Any, row: Row | None) -> Any:
    """A tensor of a graph that ranks share, which lies as a row says from here on; all else as it is."""
    if row is None or INSTALLED.builder is None or not is_partitioned():
        return value
    from msc.frontend.dispatch import apply

    strategy: tuple[Row | None, ...] | None = (row,)
    INSTALLED.strategy = strategy
    try:
        marked = apply("identity", value)
        if INSTALLED.strategy is strategy:
            message = f"shard: {described(row)} is not a strategy of a tensor {described(value.shape)}"
            raise ApiValueError("MSC1109", message, help="give a number, or an axis, for each dimension")
    finally:
        INSTALLED.strategy = None
    return marked


def all_laid(function: str, values: Any, rows: Any) -> Any:
    """Tensors, or one, that lie as a strategy says from here on. Raises MSC1109 for another number of rows."""
    if rows is None:
        return values
    several = values if isinstance(values, tuple) else (values,)
    if len(several) != len(rows):
        message = f"{function}: the strategy has {len(rows)} rows for {len(several)} tensors"
        raise ApiValueError("MSC1109", message, help="give a row for each tensor, None to leave one to the others")
    found = tuple(laid(value, row) for value, row in zip(several, rows, strict=True))
    return found if isinstance(values, tuple) else found[0]


def plan_parameters(cell: Any, plan: Mapping[str, Row]) -> None:
    """Have parameters lie as a plan says by their names. Raises MSC0895 for a name that none has."""
    parameters = {p.name: p for p in cell.get_parameters()}
    for name, row in plan.items():
        short = name.removeprefix("self.")
        parameter = next((p for known, p in parameters.items() if known == short or known.endswith("." + short)), None)
        if parameter is None:
            raise ApiValueError("MSC0895", f"parameter_plan: no '{name}'", help=did_you_mean(short, parameters))
        parameter.strategy = row


def shard(fn: FunctionT, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None) -> FunctionT:
    """The function, whose inputs and outputs lie as strategies say in a graph that ranks share; the rest follows.

    Raises MSC0887 for strategies that are none, and MSC1109 in a call whose tensors they do not cut.
    """
    checked_strategy("shard", "in_strategy", in_strategy)
    checked_strategy("shard", "out_strategy", out_strategy)
    if parameter_plan:
        plan_parameters(fn, parameter_plan)

    def sharded(*inputs: Any) -> Any:
        return all_laid("shard", fn(*all_laid("shard", inputs, in_strategy)), out_strategy)

    return cast(FunctionT, sharded)


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
