"""MindSpore's internals that programs import although they are none of its interface: thin names for what is here.

They stand in this one place, under all paths that have them (`msc.mindspore.paths`). New programs need none of them.
"""

# pyright: reportUnusedFunction=false, reportUnusedClass=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeVar, cast

import numpy as np

from msc import amp, nn, ops
from msc.frontend import dtypes, initializers, tensor
from msc.frontend.boundary import elsewhere
from msc.frontend.capture import INSTALLED
from msc.frontend.errors import ApiValueError
from msc.frontend.modes import Hooks
from msc.frontend.tensor import Tensor
from msc.mindspore import checkparam
from msc.nn import activation, normalisation, recurrent
from msc.support.arrays import Array
from msc.train.callback import base as callbacks

T = TypeVar("T")

__all__ = [
    "AMP_AUTO_BLACK_LIST", "AMP_AUTO_WHITE_LIST", "AMP_PRIM_ARG_TABLE", "JitConfig", "RNNCellBase", "StubTensor",
    "Tensor", "Validator", "cell_attr_register", "cells_compile_cache", "from_dlpack", "grad_scale", "lazy_inline",
    "no_inline", "rearrange_inputs", "recompute", "shard_grad_scale", "tensor_operator_registry", "tensor_to_ms_type",
    "tensor_to_np_type", "to_dlpack",
]  # fmt: skip

# Networks and training.

_Loss = nn.LossBase
_BatchNorm = normalisation.BatchNorm
_InternalCallbackParam = callbacks.Facts
_activation = activation._BY_NAME
RNNCellBase = recurrent._StepCell
_Function = nn.Cell


class JitConfig:
    """Options of compilation. The strictness is that of the reader of functions; graphs are always optimised."""

    def __init__(
        self,
        jit_level: str = "",
        exc_mode: str = "auto",
        jit_syntax_level: str = "",
        debug_level: str = "RELEASE",
        infer_boost: str = "off",
        **kwargs: Any,
    ) -> None:
        for name, value, known in (
            ("jit_level", jit_level, ("", "O0", "O1", "O2")),
            ("exc_mode", exc_mode, ("auto", "sink", "no_sink")),
            ("jit_syntax_level", jit_syntax_level, ("", "STRICT", "COMPATIBLE", "LAX")),
            ("debug_level", debug_level, ("RELEASE", "DEBUG")),
            ("infer_boost", infer_boost, ("on", "off")),
        ):
            if value not in known:
                raise ApiValueError("MSC0887", f"JitConfig: {name} is {value!r}; it is one of {', '.join(known)}")
        self.jit_config_dict = {
            "jit_level": jit_level,
            "exc_mode": exc_mode,
            "jit_syntax_level": jit_syntax_level,
            "debug_level": debug_level,
            "infer_boost": infer_boost,
            **kwargs,
        }


def _same(function: T) -> T:
    return function


def _decorator(function: Any) -> Any:
    """A decorator with or without arguments that leaves what it decorates as it is."""

    def decorated(fn: Any = None, **_: Any) -> Any:
        return fn if callable(fn) else _same

    decorated.__doc__ = function.__doc__
    return decorated


@_decorator
def lazy_inline() -> None:
    """A cell or function itself: msc reads equal cells once, and inlines as kernels need it."""


@_decorator
def no_inline() -> None:
    """A function itself: msc inlines as kernels need it."""


def recompute(block: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What a Cell gives, whose activations are computed again for the gradient."""
    return Hooks.recompute(lambda: block(*args, **keywords), True)


def rearrange_inputs(func: Callable[..., T]) -> Callable[..., T]:
    """A method that takes its inputs in the order of the attribute `indexes`."""

    def called(self: Any, *args: Any, **keywords: Any) -> T:
        order = getattr(self, "_indexes", getattr(self, "indexes", None))
        return func(self, *(args if order is None else [args[i] for i in order]), **keywords)

    return called


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """The initialiser of a cell itself: a graph is compiled for all that a cell has, `attrs` among it."""
    return fn if callable(fn) or (attrs is not None and fn is not None) else _same


class _VirtualDatasetCell(nn.Cell):
    """A network as it is: one process has all rows of a batch."""

    def __init__(self, backbone: nn.Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs)


grad_scale = ops.MultitypeFuncGraph("grad_scale")
shard_grad_scale = ops.MultitypeFuncGraph("shard_grad_scale")
_grad_scale = grad_scale
_grad_overflow = ops.MultitypeFuncGraph("_grad_overflow")


@grad_scale.register("Tensor", "Tensor")
def _scaled(scale: Tensor, grad: Tensor) -> Tensor:
    return ops.mul(grad, ops.cast(ops.reciprocal(scale), grad.dtype))


@_grad_overflow.register("Tensor")
def _overflowing(grad: Tensor) -> Tensor:
    return ops.FloatStatus()(grad)


def _set_cur_net(net: nn.Cell) -> None:
    """Nothing: callbacks are given the network with the facts of the run."""


class _StepSync(callbacks.Callback):
    """Waits for a step: operations run at once."""


def _transfer_tensor_to_tuple(inputs: Any) -> Any:
    return (inputs,) if isinstance(inputs, Tensor) else inputs


class _CallbackManager(callbacks.Callback):
    """Several callbacks as one, which a program calls itself."""

    def __init__(self, callbacks: Any) -> None:
        self._callbacks: list[Any] = [*callbacks] if type(callbacks) in (list, tuple) else [callbacks] * bool(callbacks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _each(self, event: str, run_context: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, event)(run_context)

    def begin(self, run_context: Any) -> None:
        self._each("begin", run_context)

    def epoch_begin(self, run_context: Any) -> None:
        self._each("epoch_begin", run_context)

    def epoch_end(self, run_context: Any) -> None:
        self._each("epoch_end", run_context)

    def step_begin(self, run_context: Any) -> None:
        self._each("step_begin", run_context)

    def step_end(self, run_context: Any) -> None:
        self._each("step_end", run_context)

    def end(self, run_context: Any) -> None:
        self._each("end", run_context)


def _add_loss_network(network: nn.Cell, loss_fn: Any, cast_model_type: Any) -> nn.Cell:
    """A network and a loss, whose output is f32."""
    del cast_model_type
    return nn.WithLossCell(network, loss_fn)


def _do_keep_batchnorm_fp32(network: nn.Cell) -> None:
    """Nothing: a level of mixed precision leaves batch norms in f32 itself."""


_config_level: Mapping[str, Mapping[str, Any]] = {
    level: {
        "keep_batchnorm_fp32": level == "O2",
        "cast_model_type": dtypes.float32 if level in ("O0", "O1") else dtypes.float16,
        "loss_scale_manager": amp.DynamicLossScaleManager() if level == "O2" else None,
    }
    for level in ("O0", "O1", "O2", "O3")
}
AMP_AUTO_WHITE_LIST = [*(p for p in amp.get_white_list() if issubclass(p, ops.Primitive))]
AMP_AUTO_BLACK_LIST: list[Any] = [ops.Pow, ops.ACos, ops.Asin, ops.Cosh, ops.Exp, ops.Log, ops.Softmax, ops.LayerNorm]
AMP_PRIM_ARG_TABLE: dict[Any, list[int]] = {}


# Initialisers.

_INITIALIZER_ALIAS = initializers._BY_NAME
_calculate_gain = initializers.gain_of


def _register(*aliases: str) -> Callable[[T], T]:
    """Make a class an initialiser that has names."""

    def registered(cls: Any) -> Any:
        for name in (cls.__name__, *aliases):
            initializers._BY_NAME.setdefault(name.lower(), cls)
        return cls

    return registered


def _assignment(arr: Array, num: Any) -> Array:
    """An array, filled with a number or with the elements of another."""
    arr[...] = num
    return arr


def _init_random_uniform(a: float, b: float, shape: Any) -> Array:
    return np.asarray(initializers.generator().uniform(a, b, shape), np.float32)


def _init_random_normal(mean: float, sigma: float, shape: Any) -> Array:
    return np.asarray(initializers.generator().normal(mean, sigma, shape), np.float32)


# Layers of one step, as functions.


def _step(function: Callable[..., Any], inputs: Tensor, state: Any, parameters: Sequence[Any]) -> Any:
    w_ih, w_hh, b_ih, b_hh = cast(tuple[Any, ...], (*parameters, None, None)[:4])
    is_pair = type(state) is tuple
    new: Any = function(ops.dense(inputs, w_ih, b_ih), state if is_pair else (state,), w_hh, b_hh)
    return new if is_pair else new[0]


def _rnn_tanh_cell(inputs: Tensor, hidden: Tensor, *parameters: Any) -> Any:
    return _step(recurrent.rnn_step(ops.tanh), inputs, hidden, parameters)


def _rnn_relu_cell(inputs: Tensor, hidden: Tensor, *parameters: Any) -> Any:
    return _step(recurrent.rnn_step(ops.relu), inputs, hidden, parameters)


def _gru_cell(inputs: Tensor, hidden: Tensor, *parameters: Any) -> Any:
    return _step(recurrent.gru_step, inputs, hidden, parameters)


def _lstm_cell(inputs: Tensor, hidden: Any, *parameters: Any) -> Any:
    return _step(recurrent.lstm_step, inputs, tuple(hidden), parameters)


def _check_input_3d(input_shape: Sequence[int], op_name: str | None = None) -> None:
    if len(input_shape) != 3:
        raise ApiValueError("MSC0201", f"{op_name}: the input has shape {tuple(input_shape)}; it must have rank 3")


# Tensors and their methods.

StubTensor = Tensor


class tensor_operator_registry:
    """Methods of tensors by name, which a program may add to."""

    @staticmethod
    def register(name: str, value: Any) -> Any:
        setattr(Tensor, name, value)
        return value

    @staticmethod
    def get(name: str) -> Any:
        return getattr(Tensor, name)


def from_dlpack(dlpack: Any) -> Tensor:
    """A tensor of what another library exports by DLPack."""
    return Tensor(np.from_dlpack(dlpack))


def to_dlpack(tensor: Tensor) -> Any:
    """What another library imports by DLPack."""
    return tensor.__dlpack__()


def _convert_stub(stub: T) -> T:
    return stub


def _get_cache_prim(cls: Callable[..., T]) -> Callable[..., T]:
    """What makes operators of a class: the class."""
    return cls


def _convert_python_data(data: T) -> T:
    return data


# Execution.

cells_compile_cache: dict[int, Any] = {}


class _no_grad:
    """Within, nothing is differentiated, where nothing is. Raises MSC0898 inside of a function that is."""

    def __enter__(self) -> None:
        if INSTALLED.builder is not None:
            message = "_no_grad cannot be left out of a gradient that is being taken"
            raise ApiValueError("MSC0898", message, help="ops.stop_gradient(x) makes x a constant")

    def __exit__(self, *_: object) -> None:
        pass


class _Executor:
    """What runs operations in PyNative mode: Python, one after the other."""

    def sync(self) -> None:
        """Nothing: operations run at once."""

    def enable_grad(self) -> bool:
        """Whether gradients may be taken."""
        return True

    def set_enable_grad(self, flag: bool) -> None:
        """Nothing: gradients are taken where they are asked for."""
        del flag


_pynative_executor = _Executor()


# Checkpoints.

tensor_to_ms_type = {str(dtype).lower(): dtype for dtype in dtypes.DTYPES}
tensor_to_np_type = {str(dtype).lower(): dtype.numpy.type for dtype in dtypes.DTYPES}


def _update_param(param: Any, new_param: Any, strict_load: bool = False) -> None:
    """Give a parameter the value of another of its shape, and of its type if it is strict."""
    if strict_load and param.dtype is not new_param.dtype:
        raise ApiValueError("MSC0831", f"'{param.name}' is {param.dtype}, and the value is {new_param.dtype}")
    param.set_data(ops.cast(tensor.value_of(new_param), param.dtype))


Validator = checkparam


def __getattr__(name: str) -> Any:
    known = [each for each in globals() if not each.startswith("__")]
    return elsewhere("MindSpore's internals in msc", name, known)
