"""msc: a MindSpore-style multi-level compiler for neural networks, built on xDSL.

`import msc` loads nothing heavy: each public name imports its module at first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from msc.mindspore import paths

if TYPE_CHECKING:
    from msc import amp as amp
    from msc import common as common
    from msc import context as context
    from msc import dataset as dataset
    from msc import experimental as experimental
    from msc import mint as mint
    from msc import nn as nn
    from msc import numpy as numpy
    from msc import ops as ops
    from msc import runtime as runtime
    from msc import scipy as scipy
    from msc import train as train
    from msc.common import dtype as dtype
    from msc.common.api import jit_class as jit_class
    from msc.common.dtype import dtype_to_nptype as dtype_to_nptype
    from msc.common.dtype import float_ as float_
    from msc.common.dtype import int_ as int_
    from msc.common.dtype import pytype_to_dtype as pytype_to_dtype
    from msc.context import COMPATIBLE as COMPATIBLE
    from msc.context import LAX as LAX
    from msc.context import STRICT as STRICT
    from msc.driver.api import compile, export
    from msc.frontend.devices import DeviceCtx as DeviceCtx
    from msc.frontend.devices import Event as Event
    from msc.frontend.devices import Profiler as Profiler
    from msc.frontend.devices import Stream as Stream
    from msc.frontend.devices import StreamCtx as StreamCtx
    from msc.frontend.devices import communication_stream as communication_stream
    from msc.frontend.devices import current_stream as current_stream
    from msc.frontend.devices import default_stream as default_stream
    from msc.frontend.devices import dispatch_threads_num as dispatch_threads_num
    from msc.frontend.devices import empty_cache as empty_cache
    from msc.frontend.devices import get_current_device as get_current_device
    from msc.frontend.devices import launch_blocking as launch_blocking
    from msc.frontend.devices import max_memory_allocated as max_memory_allocated
    from msc.frontend.devices import max_memory_reserved as max_memory_reserved
    from msc.frontend.devices import memory_allocated as memory_allocated
    from msc.frontend.devices import memory_reserved as memory_reserved
    from msc.frontend.devices import memory_stats as memory_stats
    from msc.frontend.devices import memory_summary as memory_summary
    from msc.frontend.devices import reset_max_memory_allocated as reset_max_memory_allocated
    from msc.frontend.devices import reset_max_memory_reserved as reset_max_memory_reserved
    from msc.frontend.devices import reset_peak_memory_stats as reset_peak_memory_stats
    from msc.frontend.devices import set_cpu_affinity as set_cpu_affinity
    from msc.frontend.devices import set_cur_stream as set_cur_stream
    from msc.frontend.devices import set_deterministic as set_deterministic
    from msc.frontend.devices import set_device as set_device
    from msc.frontend.devices import set_memory as set_memory
    from msc.frontend.devices import set_recursion_limit as set_recursion_limit
    from msc.frontend.devices import synchronize as synchronize
    from msc.frontend.dtypes import (
        DType,
        bfloat16,
        bool_,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from msc.frontend.jit import jit
    from msc.frontend.log import get_level as get_level
    from msc.frontend.log import get_log_config as get_log_config
    from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE, get_context, reset_context, set_context
    from msc.frontend.mutable import Symbol as Symbol
    from msc.frontend.mutable import mutable
    from msc.frontend.parallel import Layout as Layout
    from msc.frontend.parallel import ParallelMode as ParallelMode
    from msc.frontend.parallel import build_searched_strategy as build_searched_strategy
    from msc.frontend.parallel import get_algo_parameters as get_algo_parameters
    from msc.frontend.parallel import get_auto_parallel_context as get_auto_parallel_context
    from msc.frontend.parallel import get_ps_context as get_ps_context
    from msc.frontend.parallel import load_distributed_checkpoint as load_distributed_checkpoint
    from msc.frontend.parallel import merge_sliced_parameter as merge_sliced_parameter
    from msc.frontend.parallel import parameter_broadcast as parameter_broadcast
    from msc.frontend.parallel import reset_algo_parameters as reset_algo_parameters
    from msc.frontend.parallel import reset_auto_parallel_context as reset_auto_parallel_context
    from msc.frontend.parallel import reset_ps_context as reset_ps_context
    from msc.frontend.parallel import set_algo_parameters as set_algo_parameters
    from msc.frontend.parallel import set_auto_parallel_context as set_auto_parallel_context
    from msc.frontend.parallel import set_ps_context as set_ps_context
    from msc.frontend.parallel import shard as shard
    from msc.frontend.parallel import sync_pipeline_shared_parameters as sync_pipeline_shared_parameters
    from msc.frontend.parameter import Parameter, ParameterTuple
    from msc.frontend.randomness import get_seed, set_seed
    from msc.frontend.transforms.api import get_grad, grad, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
    from msc.nn.metrics import F1 as F1
    from msc.nn.metrics import MAE as MAE
    from msc.nn.metrics import MSE as MSE
    from msc.nn.metrics import ROC as ROC
    from msc.nn.metrics import Accuracy as Accuracy
    from msc.nn.metrics import ConfusionMatrix as ConfusionMatrix
    from msc.nn.metrics import CosineSimilarity as CosineSimilarity
    from msc.nn.metrics import Fbeta as Fbeta
    from msc.nn.metrics import Loss as Loss
    from msc.nn.metrics import Metric as Metric
    from msc.nn.metrics import Perplexity as Perplexity
    from msc.nn.metrics import Precision as Precision
    from msc.nn.metrics import Recall as Recall
    from msc.nn.metrics import Top1CategoricalAccuracy as Top1CategoricalAccuracy
    from msc.nn.metrics import Top5CategoricalAccuracy as Top5CategoricalAccuracy
    from msc.nn.metrics import TopKCategoricalAccuracy as TopKCategoricalAccuracy
    from msc.nn.metrics import auc as auc
    from msc.nn.metrics import get_metric_fn as get_metric_fn
    from msc.nn.metrics import names as names
    from msc.nn.optim.loss_scale import DynamicLossScaleManager as DynamicLossScaleManager
    from msc.nn.optim.loss_scale import FixedLossScaleManager as FixedLossScaleManager
    from msc.nn.optim.loss_scale import LossScaleManager as LossScaleManager
    from msc.nn.summary import summary
    from msc.ops import Tensor, from_numpy, tensor
    from msc.ops import constexpr as constexpr
    from msc.ops import is_tensor as is_tensor
    from msc.runtime.artifact import CompiledModel, load
    from msc.support.diagnostics import Diagnostic, Location, MscError
    from msc.train.callback import Callback as Callback
    from msc.train.callback import CheckpointConfig as CheckpointConfig
    from msc.train.callback import EarlyStopping as EarlyStopping
    from msc.train.callback import History as History
    from msc.train.callback import LambdaCallback as LambdaCallback
    from msc.train.callback import LearningRateScheduler as LearningRateScheduler
    from msc.train.callback import LossMonitor as LossMonitor
    from msc.train.callback import ModelCheckpoint as ModelCheckpoint
    from msc.train.callback import ReduceLROnPlateau as ReduceLROnPlateau
    from msc.train.callback import RunContext as RunContext
    from msc.train.callback import TimeMonitor as TimeMonitor
    from msc.train.data_sink import data_sink as data_sink
    from msc.train.model import Model
    from msc.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint
    from msc.train.summary import SummaryCollector as SummaryCollector
    from msc.train.summary import SummaryRecord as SummaryRecord

    ms_class, ms_function = jit_class, jit

__all__ = [
    "GRAPH_MODE", "PYNATIVE_MODE", "CompiledModel", "DType", "Diagnostic", "Location", "Model", "MscError",
    "Parameter", "ParameterTuple", "Tensor", "bfloat16", "bool_", "compile", "export", "float16", "float32",
    "float64", "from_numpy", "get_context", "get_grad", "get_seed", "grad", "int8", "int16", "int32", "int64",
    "jacfwd", "jacrev", "jit", "jvp", "load", "load_checkpoint", "load_param_into_net", "mutable", "reset_context",
    "save_checkpoint", "set_context", "set_seed", "summary", "tensor", "uint8", "uint16", "uint32", "uint64",
    "value_and_grad", "vjp", "vmap",
]  # fmt: skip

__version__ = "0.1.0"

paths.install()

DISTRIBUTION = "msc-compiler"
"""What pip calls the package. The package `msc` of the Python index is another program."""

_NAMES = {
    "msc.common.api": "jit_class",
    "msc.common.dtype": "dtype_to_nptype float_ int_ pytype_to_dtype",
    "msc.context": "COMPATIBLE LAX STRICT",
    "msc.frontend.devices": (
        "DeviceCtx Event Profiler Stream StreamCtx communication_stream current_stream default_stream "
        "dispatch_threads_num empty_cache get_current_device launch_blocking max_memory_allocated "
        "max_memory_reserved memory_allocated memory_reserved memory_stats memory_summary "
        "reset_max_memory_allocated reset_max_memory_reserved reset_peak_memory_stats set_cpu_affinity "
        "set_cur_stream set_deterministic set_device set_memory set_recursion_limit synchronize"
    ),
    "msc.frontend.log": "get_level get_log_config",
    "msc.frontend.parallel": (
        "Layout ParallelMode build_searched_strategy get_algo_parameters get_auto_parallel_context get_ps_context "
        "load_distributed_checkpoint merge_sliced_parameter parameter_broadcast reset_algo_parameters "
        "reset_auto_parallel_context reset_ps_context set_algo_parameters set_auto_parallel_context set_ps_context "
        "shard sync_pipeline_shared_parameters"
    ),
    "msc.nn.metrics": (
        "Accuracy ConfusionMatrix CosineSimilarity F1 Fbeta Loss MAE MSE Metric Perplexity Precision ROC Recall "
        "Top1CategoricalAccuracy Top5CategoricalAccuracy TopKCategoricalAccuracy auc get_metric_fn names"
    ),
    "msc.train.summary": "SummaryCollector SummaryRecord",
    "msc.driver.api": "compile export",
    "msc.frontend.dtypes": (
        "bfloat16 bool_ DType float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8"
    ),
    "msc.frontend.jit": "jit",
    "msc.frontend.modes": "get_context GRAPH_MODE PYNATIVE_MODE reset_context set_context",
    "msc.frontend.mutable": "mutable Symbol",
    "msc.frontend.parameter": "Parameter ParameterTuple",
    "msc.frontend.randomness": "get_seed set_seed",
    "msc.frontend.transforms.api": "get_grad grad jacfwd jacrev jvp value_and_grad vjp vmap",
    "msc.nn.optim.loss_scale": "DynamicLossScaleManager FixedLossScaleManager LossScaleManager",
    "msc.nn.summary": "summary",
    "msc.ops": "constexpr from_numpy is_tensor Tensor tensor",
    "msc.runtime.artifact": "CompiledModel load",
    "msc.support.diagnostics": "Diagnostic Location MscError",
    "msc.train.callback": (
        "Callback CheckpointConfig EarlyStopping History LambdaCallback LearningRateScheduler LossMonitor "
        "ModelCheckpoint ReduceLROnPlateau RunContext TimeMonitor"
    ),
    "msc.train.data_sink": "data_sink",
    "msc.train.model": "Model",
    "msc.train.serialization": "load_checkpoint load_param_into_net save_checkpoint",
}
"""Module -> the public names that are imported from it when they are used."""

_EXPORTS = {
    **{name: (module, name) for module, names in _NAMES.items() for name in names.split()},
    "ms_class": ("msc.common.api", "jit_class"),
    "ms_function": ("msc.frontend.jit", "jit"),
}
"""Public name -> (module, attribute)."""

_MODULES = frozenset(
    "amp common context dataset experimental mint nn numpy ops runtime scipy train".split(),
)
"""Modules that are there after `import msc`, as in MindSpore."""


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        if name == "dtype":
            return import_module("msc.common.dtype")
        if name in _MODULES or f"msc.{name}" in paths.PATHS:
            return import_module(f"msc.{name}")
        if name not in _EXPORTS:
            from msc.frontend.boundary import elsewhere

            return elsewhere("msc", name, [*_EXPORTS, *_MODULES])
        module, attribute = _EXPORTS[name]
        from msc.frontend.boundary import published

        globals()[name] = value = published(getattr(import_module(module), attribute), f"msc.{name}")
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
