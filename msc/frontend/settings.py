"""Arguments and settings of MindSpore's that nothing here needs: one table says of each why.

What only concerns speed, memory, devices or diagnostics is said once to have no effect (MSC0886). What could change a
result is refused (MSC0887), and so is a value that MindSpore does not have. `tests/unit/test_arguments.py` walks all
public signatures: an argument is read, or goes through `unused`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msc.frontend.errors import ApiTypeError, ApiValueError, at_user_line
from msc.support import notices
from msc.support.argument_values import described


@dataclass(frozen=True)
class Setting:
    """An argument that does nothing: `neutral` are values that ask for nothing, `choices` all that there are.

    Without choices, values have the type of the first neutral one, unless that is None. With `refused` a value that
    asks for something is an error.
    """

    reason: str
    neutral: tuple[Any, ...] = (None,)
    choices: tuple[Any, ...] = ()
    refused: bool = False


_ONE_PROCESS = "rows are made in this process, by threads"
_ONE_THREAD = "one thread makes these rows"
_PLANNED = "memory is planned when a graph is compiled"
_ONE_DEVICE = "there is one device, the CPU"
_NO_CACHE = "rows are read where they lie"
_NOT_TUNED = "`explain` says how a pipeline is made; nothing is tuned while it runs"
_LOCKS = "updates of one process need no lock"
_TUNED = "msc chooses the code of a kernel by a cost model; `msc tune` measures"
_ON_CPU = "msc computes on the CPU, or on a simulated Ascend"
_NO_FILE = "`msc explain`, `msc opt` and `jit.explain` show what a compilation does"

_BACKENDS = (None, "", "ms_backend", "GE")

SETTINGS: Mapping[str, Setting] = {
    # Data sets.
    "num_parallel_workers": Setting(_ONE_THREAD, (None, 1)),
    "python_multiprocessing": Setting(_ONE_PROCESS, (False, None)),
    "GeneratorDataset.python_multiprocessing": Setting(_ONE_PROCESS, (True, False)),
    "operator": Setting("rows are dictionaries", refused=True),
    "parallel_writer": Setting("rows are written as they come", (False,)),
    "autotune_interval": Setting(_NOT_TUNED, (0,)),
    "auto_num_workers": Setting(_NOT_TUNED, (False,)),
    "debug_mode": Setting(_ONE_PROCESS, (False,)),
    "dynamic_shape": Setting("each shape is compiled when it comes", (False,)),
    "enable_autotune": Setting(_NOT_TUNED, (False,)),
    "enable_shared_mem": Setting(_ONE_PROCESS, (True,)),
    "enable_watchdog": Setting(_ONE_PROCESS, (True,)),
    "fast_recovery": Setting("a pass can begin at any row", (True,)),
    "monitor_sampling_interval": Setting(_NOT_TUNED, (1000,)),
    "multiprocessing_start_method": Setting(_ONE_PROCESS, ("fork",)),
    "multiprocessing_timeout_interval": Setting(_ONE_PROCESS, (300,)),
    "numa_enable": Setting(_ONE_PROCESS, (False,)),
    "DatasetCache.size": Setting(_NO_CACHE, (0,)),
    "spilling": Setting(_NO_CACHE, (False,)),
    "hostname": Setting(_NO_CACHE),
    "port": Setting(_NO_CACHE),
    "num_connections": Setting(_NO_CACHE),
    "prefetch_size": Setting(_NO_CACHE),
    "max_rowsize": Setting(_ONE_PROCESS),
    "cache": Setting(_NO_CACHE),
    "callbacks": Setting("callbacks of pipelines are not called", refused=True),
    "schema": Setting("column_types gives the types of columns", refused=True),
    "decrypt": Setting("files are read as they are; a source of GeneratorDataset may decrypt them", refused=True),
    "shard_equal_rows": Setting("shards may differ by a row; num_samples makes them equal", (False,), refused=True),
    "estimate": Setting("shapes are those of the first row", (False,)),
    "do_copy": Setting("what an iterator gives is the caller's own", (False, True)),
    "inplace": Setting("images are changed in copies", (False,)),
    # Training.
    "boost_level": Setting("training is not altered to be faster", ("O0",), ("O0", "O1", "O2"), refused=True),
    "dataset_sink_mode": Setting("evaluation takes one batch at a time", (False,)),
    "valid_dataset_sink_mode": Setting("evaluation takes one batch at a time", (False,)),
    "input_signature": Setting("functions are compiled for the shapes that come"),
    "backend": Setting(
        "networks run on the CPU", (None, "", "ms_backend", "GE"), (None, "", "ms_backend", "GE", "lite")
    ),
    "remove_redundancy": Setting("a checkpoint of one process has no copies", (False,)),
    "integrated_save": Setting("a parameter of one process is always whole", (True,), (True, False)),
    "processes_num": Setting(_ONE_PROCESS, (1,)),
    "num_process": Setting("events are written by the thread that records them", (32,)),
    "max_file_size": Setting("event files grow; a new record begins a new file"),
    "raise_exception": Setting("errors are always raised", (False,)),
    "export_options": Setting("values are written as events; asnumpy() gives arrays to numpy.save", refused=True),
    "custom_lineage_data": Setting("there are no lineage files"),
    "collect_tensor_freq": Setting("tensors inside networks are collected by summary operators"),
    # Optimisers, layers, operators.
    "use_locking": Setting(_LOCKS, (False,)),
    "use_offload": Setting(_ONE_DEVICE, (False,)),
    "use_lazy": Setting("every row is updated, as without it", (False,), refused=True),
    "flags": Setting("graphs depend on the code of a cell alone"),
    "device_num": Setting(f"{_ONE_DEVICE}; mpirun -n 4 python train.py starts four processes", (1,)),
    "auto_parallel_mode": Setting(_ONE_DEVICE, (False,), refused=True),
    "dtype": Setting("results have the element type of the inputs"),
    "requires_grad": Setting("gradients are taken where they are asked for", (True, False)),
    "cell_id": Setting("errors name the place of the hook", ("",)),
    "read_value": Setting("functions are given tensors", (False,)),
    "doc_url": Setting("errors list the kinds", ("",)),
    "reshape_with_axis": Setting("entries are computed one by one", (None,)),
    "align": Setting("one diagonal is not aligned", ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")),
    "padding_value": Setting("one diagonal is not filled up", (0, None)),
    "generator": Setting("random numbers are those of msc.set_seed"),
    "edge_order": Setting("differences at the ends are those of two neighbours", (1,), refused=True),
    "func_type": Setting("hybrid functions are run by Python, as with func_type='pyfunc'", ("pyfunc",)),
    "reg_info": Setting("shapes and types are those of out_shape and out_dtype"),
    "mode": Setting("there is one kind of convolution", (1,), refused=True),
    "half_pixel_centers": Setting("pixels are as align_corners says", (False,), refused=True),
    "offset": Setting("seed alone chooses the order", (0,), refused=True),
    "get_instance": Setting("the function is called where it stands", (True,)),
    "name": Setting("errors name the function", (None,)),
    "reuse_result": Setting("a constant is computed once for each graph", (True,)),
    "check": Setting("arguments are those of Python", (True,)),
    "const_arg": Setting("reading a function finds out what is constant", (False,)),
    "dynamic_len": Setting("a compiled function has one length of each list", (False,)),
    "output_broadcast": Setting("all ranks have the results", (True,), (False, True)),
    "in_strategy": Setting(_ONE_DEVICE),
    "message": Setting("nothing is recorded"),
    "stream": Setting("nothing is recorded"),
    "domain": Setting("nothing is recorded", ("default",)),
    "out_strategy": Setting(_ONE_DEVICE),
    "stage": Setting(_ONE_DEVICE, (0,)),
    "primitive_target": Setting(_ONE_DEVICE, ("CPU",), ("CPU", "GPU", "Ascend")),
    # jit.
    "jit.mode": Setting("functions are read from their source"),
    "jit_level": Setting("graphs are always optimised as far as msc can", ("O0", "O1"), ("O0", "O1", "O2")),
    "capture_mode": Setting("functions are read from their source", ("ast",), ("ast", "bytecode", "trace")),
    "hash_args": Setting("what a function depends on is found out"),
    "jit_config": Setting("its options are settings of msc.jit", (None, {})),
    "compile_once": Setting("what a function depends on is looked at in each call", (None, False)),
    "disable_format_transform": Setting("layouts do not change results", (None, False, True)),
    "ge_options": Setting(_ONE_DEVICE),
    "infer_boost": Setting(_TUNED, (None, "off"), (None, "off", "on")),
    # Contexts.
    "device_target": Setting(_ON_CPU, ("CPU", "Ascend"), ("CPU", "GPU", "Ascend")),
    "device_id": Setting(_ONE_DEVICE, (0,)),
    "save_graphs": Setting(_NO_FILE, (False, 0), (False, True, 0, 1, 2, 3)),
    "save_graphs_path": Setting(_NO_FILE, (".", "")),
    "enable_graph_kernel": Setting("operations are always fused", (False,)),
    "graph_kernel_flags": Setting(_TUNED, ("",)),
    "deterministic": Setting("results are always deterministic", ("ON", "OFF"), ("ON", "OFF")),
    "pynative_synchronize": Setting("operations run at once", (True, False)),
    "max_call_depth": Setting("Python's recursion limit counts", (1000,)),
    "reserve_class_name_in_scope": Setting("names of parameters do not depend on it", (True, False)),
    "enable_compile_cache": Setting("compiled graphs are kept in MSC_CACHE_DIR", (True,)),
    "compile_cache_path": Setting("compiled graphs are kept in MSC_CACHE_DIR", ("",)),
    "precompile_only": Setting("a graph is compiled when it is called", (False,), refused=True),
    "max_device_memory": Setting(_PLANNED, ("",)),
    "variable_memory_max_size": Setting(_PLANNED, ("",)),
    "mempool_block_size": Setting(_PLANNED, ("",)),
    "memory_optimize_level": Setting(_PLANNED, ("O0",), ("O0", "O1")),
    "enable_reduce_precision": Setting("operations keep their element types", (False,)),
    "enable_profiling": Setting("`msc bench --kernels` measures kernels", (False,)),
    "profiling_options": Setting("`msc bench --kernels` measures kernels", ("",)),
    "check_bprop": Setting("tests compare all gradients", (False,)),
    "print_file_path": Setting("print writes to the standard output", ("",)),
    "env_config_path": Setting(_NO_FILE, ("",)),
    "grad_for_scalar": Setting("numbers have gradients where they are asked for", (False, True)),
    "support_binary": Setting("functions are read from their source", (False,)),
    "ascend_config": Setting(_ONE_DEVICE, ({},)),
    "gpu_config": Setting(_ONE_DEVICE, ({},)),
    "op_timeout": Setting(_ONE_DEVICE, (0,)),
    "aoe_tune_mode": Setting(_TUNED, ("",)),
    "auto_tune_mode": Setting(_TUNED, ("",)),
    "inter_op_parallel_num": Setting("operations run one after the other", (0, 1)),
    "exec_order": Setting("msc orders kernels by the memory that they need", ("", None)),
    "save_compile_cache": Setting("compiled graphs are kept in MSC_CACHE_DIR", (True,)),
    "load_compile_cache": Setting("compiled graphs are kept in MSC_CACHE_DIR", (True,)),
    "enable_sparse": Setting("gradients are dense", (False,), refused=True),
    "enable_dump": Setting(_NO_FILE, (False,)),
    "save_dump_path": Setting(_NO_FILE, (".", "")),
}

_said: set[tuple[str, str]] = set()
"""What users were told."""


def tell_once(key: tuple[str, str], code: str, message: str, *, help: str | None = None, note: str = "") -> None:
    """A warning at the user's line, unless there was one of this key."""
    if key not in _said:
        _said.add(key)
        notices.warn(at_user_line(code, message, help=help, notes=(note,) if note else ()))


def unused(call: str, /, **given: Any) -> None:
    """Tell once of arguments of a call that have no effect. Raises MSC0887 for what is not there."""
    for name, value in given.items():
        setting = SETTINGS.get(f"{call}.{name}") or SETTINGS[name]
        if _is_among(value, setting.neutral):
            continue
        _check(call, name, value, setting)
        tell_once((call, name), "MSC0886", f"{call}: {name}={described(value)} has no effect", note=setting.reason)


def _check(call: str, name: str, value: Any, setting: Setting) -> None:
    if setting.choices and not _is_among(value, setting.choices):
        raise ApiValueError("MSC0887", f"{call}: {name} is {described(value)}; it is {_listed(setting.choices)}")
    if name == "jit_config":
        return
    first: object = setting.neutral[0]
    kind = first.__class__
    if not setting.choices and kind is not type(None) and not isinstance(value, kind):
        message = f"{call}: {name} is {described(value)}; it takes a value as {setting.neutral[0]!r}"
        raise ApiTypeError("MSC0887", message)
    if setting.refused:
        what = f"{call}: {name}={described(value)} is not there"
        raise ApiValueError("MSC0887", what, notes=(setting.reason,), help=f"leave {name} out")


def _is_among(value: Any, values: tuple[Any, ...]) -> bool:
    return any(value is each or (type(value) is type(each) and value == each) for each in values)


def _listed(values: tuple[Any, ...]) -> str:
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last
