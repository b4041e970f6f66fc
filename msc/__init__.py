"""msc: a MindSpore-style multi-level compiler for neural networks, built on xDSL.

`import msc` loads nothing heavy: each public name imports its module at first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msc import amp as amp
    from msc import common as common
    from msc import context as context
    from msc import dataset as dataset
    from msc import nn as nn
    from msc import numpy as numpy
    from msc import ops as ops
    from msc import train as train
    from msc.common import dtype as dtype
    from msc.common.api import jit_class as jit_class
    from msc.common.dtype import dtype_to_nptype as dtype_to_nptype
    from msc.common.dtype import float_ as float_
    from msc.common.dtype import int_ as int_
    from msc.common.dtype import pytype_to_dtype as pytype_to_dtype
    from msc.driver.api import compile, export
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
    from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE, get_context, reset_context, set_context
    from msc.frontend.mutable import mutable
    from msc.frontend.parameter import Parameter, ParameterTuple
    from msc.frontend.randomness import get_seed, set_seed
    from msc.frontend.transforms.api import get_grad, grad, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
    from msc.nn.optim.loss_scale import DynamicLossScaleManager as DynamicLossScaleManager
    from msc.nn.optim.loss_scale import FixedLossScaleManager as FixedLossScaleManager
    from msc.nn.optim.loss_scale import LossScaleManager as LossScaleManager
    from msc.nn.summary import summary
    from msc.ops import Tensor, from_numpy, tensor
    from msc.ops import constexpr as constexpr
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

DISTRIBUTION = "msc-compiler"
"""What pip calls the package. The package `msc` of the Python index is another program."""

_NAMES = {
    "msc.common.api": "jit_class",
    "msc.common.dtype": "dtype_to_nptype float_ int_ pytype_to_dtype",
    "msc.driver.api": "compile export",
    "msc.frontend.dtypes": (
        "bfloat16 bool_ DType float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8"
    ),
    "msc.frontend.jit": "jit",
    "msc.frontend.modes": "get_context GRAPH_MODE PYNATIVE_MODE reset_context set_context",
    "msc.frontend.mutable": "mutable",
    "msc.frontend.parameter": "Parameter ParameterTuple",
    "msc.frontend.randomness": "get_seed set_seed",
    "msc.frontend.transforms.api": "get_grad grad jacfwd jacrev jvp value_and_grad vjp vmap",
    "msc.nn.optim.loss_scale": "DynamicLossScaleManager FixedLossScaleManager LossScaleManager",
    "msc.nn.summary": "summary",
    "msc.ops": "constexpr from_numpy Tensor tensor",
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

_MODULES = frozenset({"amp", "common", "context", "dataset", "nn", "numpy", "ops", "train"})
"""Modules that are there after `import msc`, as in MindSpore."""


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        if name == "dtype":
            return import_module("msc.common.dtype")
        if name in _MODULES:
            return import_module(f"msc.{name}")
        if name not in _EXPORTS:
            from msc.frontend.errors import missing_name

            raise missing_name("msc", name, [*_EXPORTS, *_MODULES])
        module, attribute = _EXPORTS[name]
        from msc.frontend.boundary import published

        globals()[name] = value = published(getattr(import_module(module), attribute), f"msc.{name}")
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
