"""Mixed precision of whole networks: what computes in f16 or bf16, by MindSpore's levels or by lists of cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from msc import nn, ops
from msc.frontend.dtypes import as_dtype, bfloat16, float16, float32
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.precision import ComputePrecision, set_precision
from msc.frontend.settings import unused
from msc.nn.optim.loss_scale import DynamicLossScaleManager, LossScaleManager
from msc.nn.optim.scaled_steps import TrainOneStepWithLossScaleCell
from msc.support.diagnostics import did_you_mean
from msc.support.wording import a

Listed: TypeAlias = "type[nn.Cell | ops.Primitive]"
"""What a list of mixed precision holds."""

LEVELS = ("O0", "O1", "O2", "O3", "auto")

CONTRACTIONS = frozenset(
    {"matmul", "batch_matmul", "dense", "conv1d", "conv2d", "conv3d"}
    | {"conv1d_transpose", "conv2d_transpose", "conv3d_transpose"}
)
"""Operations that level O1 computes in the narrow type: products, whose sums are f32."""

_WHITE: tuple[type[nn.Cell], ...] = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose),
    *(nn.Dense, nn.LSTMCell, nn.RNNCell, nn.GRUCell),
)
_BLACK: tuple[type[nn.Cell], ...] = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm)


_WHITE_PRIMITIVES: tuple[type[ops.Primitive], ...] = (
    *(ops.Conv2D, ops.Conv3D, ops.MatMul, ops.BatchMatMul, ops.PReLU, ops.ReLU),
)


def get_white_list() -> list[Listed]:
    """The cells and primitives that `custom_mixed_precision` may compute in the narrow type: a list to change."""
    return [*_WHITE, *_WHITE_PRIMITIVES]


def get_black_list() -> list[Listed]:
    """The cells that level O2 leaves in f32: a list to change."""
    return list(_BLACK)


def auto_mixed_precision(network: nn.Cell, amp_level: str = "O0", dtype: Any = float16) -> nn.Cell:
    """The network, which from here on computes in f16 or bf16 as the level says, and gives f32.

    O0: nothing. O1: products and convolutions. O2: all but batch norms and layer norms. O3: all. auto: as O1.
    Parameters stay f32: what the optimiser updates are the master weights. Raises MSC0881.
    """
    _check(network, dtype)
    if amp_level not in LEVELS:
        near = did_you_mean(str(amp_level), LEVELS)
        raise ApiValueError("MSC0881", f"amp_level is {amp_level!r}; it is one of {', '.join(LEVELS)}", help=near)
    if amp_level == "O0":
        return network
    if amp_level in ("O1", "auto"):
        set_precision(network, ComputePrecision(as_dtype(dtype), CONTRACTIONS))
        return network
    return custom_mixed_precision(network, black_list=_BLACK if amp_level == "O2" else (), dtype=dtype)


def custom_mixed_precision(
    network: nn.Cell,
    *,
    white_list: Iterable[Listed] | None = None,
    black_list: Iterable[Listed] | None = None,
    dtype: Any = float16,
) -> nn.Cell:
    """The network, in which what the white list names computes in f16 or bf16, or all but what the black list names.

    A list has classes of cells and of primitives; a primitive counts as a function as well, where it is one operation:
    `ops.MatMul` is `ops.matmul`. What the white list names gives f32, and so does a network with a black list. Exactly
    one list is given. Raises MSC0881.
    """
    _check(network, dtype)
    if (white_list is None) == (black_list is None):
        raise ApiValueError("MSC0881", "custom_mixed_precision takes either a white_list or a black_list")
    narrow, wide = ComputePrecision(as_dtype(dtype), gives_f32=True), ComputePrecision(float32)
    listed = list(_listed(white_list or black_list or ()))
    cells = tuple(item for item in listed if issubclass(item, nn.Cell))
    names = frozenset(name for item in listed if issubclass(item, ops.Primitive) for name in _names(item))
    if black_list is not None:
        set_precision(network, replace(narrow, wide=names))
    elif names:
        set_precision(network, ComputePrecision(narrow.dtype, names))
    for _, cell in network.cells_and_names():
        if isinstance(cell, cells):
            set_precision(cell, narrow if black_list is None else wide)
    return network


def _listed(given: Iterable[object]) -> Iterable[Listed]:
    for item in given:
        if not (isinstance(item, type) and issubclass(item, nn.Cell | ops.Primitive)):
            message = f"a list of mixed precision holds classes of cells and of primitives, not {_name(item)}"
            raise ApiTypeError("MSC0881", message)
        yield item


def _names(primitive: type[ops.Primitive]) -> Iterable[str]:
    """The name of a primitive, and that of the operation of the `ms` dialect that is the same, if one is."""
    from msc.dialects.ms import OPERATIONS

    name: str = getattr(primitive, "NAME", primitive.__name__)
    yield name
    operations = (op.name.removeprefix("ms.") for op in OPERATIONS)
    yield from (o for o in operations if o.replace("_", "") == name.lower())


def _name(item: Any) -> str:
    return getattr(item, "__name__", repr(item))


def _check(network: object, dtype: Any) -> None:
    if not isinstance(network, nn.Cell):
        raise ApiTypeError("MSC0881", f"mixed precision is one of a Cell, not of {a(type(network).__name__)}")
    if as_dtype(dtype) not in (float16, bfloat16):
        raise ApiValueError("MSC0881", f"the type of mixed precision is {dtype}; it is float16 or bfloat16")


def build_train_network(
    network: nn.Cell,
    optimizer: nn.Optimizer,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    *,
    loss_scale_manager: LossScaleManager | None = None,
    keep_batchnorm_fp32: bool | None = None,
    cast_model_type: Any = None,
) -> nn.Cell:
    """The cell of a training step in mixed precision: network, loss, scaled gradient, update.

    Without `loss_scale_manager`, O2 in f16 has a dynamic scale, and the others have none. `keep_batchnorm_fp32` says
    whether O2 and O3 leave norms in f32. A fixed scale that never leaves out an update is divided out by the optimiser:
    its `loss_scale` is the same number. Raises MSC0881 and MSC0882.
    """
    unused("build_train_network", boost_level=boost_level)
    dtype = float16 if cast_model_type is None else cast_model_type
    if keep_batchnorm_fp32 is not None and level in ("O2", "O3"):
        level = "O2" if keep_batchnorm_fp32 else "O3"
    auto_mixed_precision(network, level, dtype)
    with_loss = network if loss_fn is None else nn.WithLossCell(network, loss_fn)
    manager = loss_scale_manager
    if manager is None and level == "O2" and as_dtype(dtype) is float16:
        manager = DynamicLossScaleManager()
    if manager is None:
        return nn.TrainOneStepCell(with_loss, optimizer)
    update = manager.get_update_cell()
    if update is not None:
        return TrainOneStepWithLossScaleCell(with_loss, optimizer, update, returns_state=False)
    scale = float(manager.get_loss_scale())
    if optimizer.loss_scale != scale:
        message = f"the loss counts {scale:g} times, but the optimiser divides gradients by {optimizer.loss_scale:g}"
        raise ApiValueError("MSC0882", message, help=f"make the optimiser with loss_scale={scale:g}")
    return nn.TrainOneStepCell(with_loss, optimizer, sens=scale)
