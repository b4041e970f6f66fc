"""Mixed precision, as MindSpore's `amp`: networks in f16 or bf16 with f32 master weights, and scales of losses."""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from msc.amp.levels import (
    auto_mixed_precision, build_train_network, custom_mixed_precision, get_black_list, get_white_list,
)
from msc.nn.optim.loss_scale import (
    DynamicLossScaleManager, DynamicLossScaler, DynamicLossScaleUpdateCell, FixedLossScaleManager,
    FixedLossScaleUpdateCell, LossScaleManager, LossScaler, StaticLossScaler, all_finite,
)
from msc.nn.optim.scaled_steps import TrainOneStepWithLossScaleCell
from msc.frontend.boundary import elsewhere, publish

__all__ = [
    "DynamicLossScaleManager", "DynamicLossScaleUpdateCell", "DynamicLossScaler", "FixedLossScaleManager",
    "FixedLossScaleUpdateCell", "LossScaleManager", "LossScaler", "StaticLossScaler", "TrainOneStepWithLossScaleCell",
    "all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list",
    "get_white_list",
]

publish(
    globals(),
    ["all_finite", "auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_black_list",
     "get_white_list"],
    "amp",
)


if not TYPE_CHECKING:  # a checker knows the names that there are

    def __getattr__(name: str) -> object:
        return elsewhere("msc.amp", name, __all__)
