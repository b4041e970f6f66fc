"""msc: a MindSpore-style multi-level compiler for neural networks, built on xDSL.

`import msc` loads nothing heavy: each public name imports its module at first use (PEP 562).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from msc.nn.summary import summary
    from msc.ops import Tensor, from_numpy, tensor
    from msc.runtime.artifact import CompiledModel, load
    from msc.support.diagnostics import Diagnostic, Location, MscError
    from msc.train.model import Model
    from msc.train.serialization import load_checkpoint, load_param_into_net, save_checkpoint

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "CompiledModel",
    "DType",
    "Diagnostic",
    "Location",
    "Model",
    "MscError",
    "Parameter",
    "ParameterTuple",
    "Tensor",
    "bfloat16",
    "bool_",
    "compile",
    "export",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "get_context",
    "get_grad",
    "get_seed",
    "grad",
    "int8",
    "int16",
    "int32",
    "int64",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "load",
    "load_checkpoint",
    "load_param_into_net",
    "mutable",
    "reset_context",
    "save_checkpoint",
    "set_context",
    "set_seed",
    "summary",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "value_and_grad",
    "vjp",
    "vmap",
]

__version__ = "0.1.0"

_EXPORTS: dict[str, tuple[str, str]] = {
    "GRAPH_MODE": ("msc.frontend.modes", "GRAPH_MODE"),
    "PYNATIVE_MODE": ("msc.frontend.modes", "PYNATIVE_MODE"),
    "CompiledModel": ("msc.runtime.artifact", "CompiledModel"),
    "DType": ("msc.frontend.dtypes", "DType"),
    "Diagnostic": ("msc.support.diagnostics", "Diagnostic"),
    "Location": ("msc.support.diagnostics", "Location"),
    "MscError": ("msc.support.diagnostics", "MscError"),
    "Model": ("msc.train.model", "Model"),
    "Parameter": ("msc.frontend.parameter", "Parameter"),
    "ParameterTuple": ("msc.frontend.parameter", "ParameterTuple"),
    "load_checkpoint": ("msc.train.serialization", "load_checkpoint"),
    "load_param_into_net": ("msc.train.serialization", "load_param_into_net"),
    "save_checkpoint": ("msc.train.serialization", "save_checkpoint"),
    "get_seed": ("msc.frontend.randomness", "get_seed"),
    "reset_context": ("msc.frontend.modes", "reset_context"),
    "summary": ("msc.nn.summary", "summary"),
    "Tensor": ("msc.ops", "Tensor"),
    "from_numpy": ("msc.ops", "from_numpy"),
    "tensor": ("msc.ops", "tensor"),
    "compile": ("msc.driver.api", "compile"),
    "export": ("msc.driver.api", "export"),
    "dtype_to_nptype": ("msc.common.dtype", "dtype_to_nptype"),
    "float_": ("msc.common.dtype", "float_"),
    "int_": ("msc.common.dtype", "int_"),
    "constexpr": ("msc.ops", "constexpr"),
    "data_sink": ("msc.train.data_sink", "data_sink"),
    "jit_class": ("msc.common.api", "jit_class"),
    "ms_class": ("msc.common.api", "jit_class"),
    "ms_function": ("msc.frontend.jit", "jit"),
    "pytype_to_dtype": ("msc.common.dtype", "pytype_to_dtype"),
    "get_context": ("msc.frontend.modes", "get_context"),
    "jit": ("msc.frontend.jit", "jit"),
    "load": ("msc.runtime.artifact", "load"),
    "mutable": ("msc.frontend.mutable", "mutable"),
    "set_context": ("msc.frontend.modes", "set_context"),
    "set_seed": ("msc.frontend.randomness", "set_seed"),
}
"""Public name -> (module, attribute)."""

_TRANSFORMS = "get_grad grad jacfwd jacrev jvp value_and_grad vjp vmap"
_EXPORTS.update({name: ("msc.frontend.transforms.api", name) for name in _TRANSFORMS.split()})

_DTYPES = "bfloat16 bool_ float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8"
_EXPORTS.update({name: ("msc.frontend.dtypes", name) for name in _DTYPES.split()})

_CALLBACKS = (
    "Callback CheckpointConfig EarlyStopping History LambdaCallback LearningRateScheduler LossMonitor ModelCheckpoint "
    "ReduceLROnPlateau RunContext TimeMonitor"
)
_EXPORTS.update({name: ("msc.train.callback", name) for name in _CALLBACKS.split()})
_SCALES = "DynamicLossScaleManager FixedLossScaleManager LossScaleManager"
_EXPORTS.update({name: ("msc.nn.optim.loss_scale", name) for name in _SCALES.split()})

_MODULES = frozenset({"amp", "common", "context", "dataset", "nn", "numpy", "ops", "train"})
"""Modules that are there after `import msc`, as in MindSpore."""


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
