"""A network to one that is trained as it will be quantised, and from there to integers.

Sources: MindSpore's `mindspore.train.quant.quant` of versions 0.2 to 1.x, and `mindspore_gs`'s
SimulatedQuantizationAwareTraining.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, cast

from msc import nn
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.nn.cell import Cell
from msc.nn.quantised import (
    ActQuant,
    Conv2dBnFoldQuant,
    Conv2dBnWithoutFoldQuant,
    Conv2dQuant,
    DenseQuant,
    FakeQuantization,
    FakeQuantWithLearnedStep,
    FakeQuantWithMinMaxObserver,
    FrozenQuant,
)

ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.HSwish, nn.HSigmoid, nn.LeakyReLU, nn.Sigmoid, nn.Tanh)
"""Activations behind which a fake quantisation goes."""
_POSITIVE = (nn.ReLU, nn.ReLU6, nn.HSigmoid, nn.Sigmoid)
"""Those that give no numbers below zero."""


@dataclass(frozen=True)
class _Side:
    """How weights, or activations, are quantised."""

    bits: int
    per_channel: bool
    symmetric: bool
    narrow_range: bool
    quant_delay: int

    def options(self) -> dict[str, Any]:
        """The arguments of a fake quantisation."""
        return {
            **{"num_bits": self.bits, "symmetric": self.symmetric, "narrow_range": self.narrow_range},
            **{"quant_delay": self.quant_delay, "per_channel": self.per_channel},
        }


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    """One value for weights and activations, or one for each: weights first."""
    if isinstance(given, tuple | list):
        both = cast(Sequence[Any], given)
        if len(both) != 2:
            raise ApiValueError("MSC0824", f"convert_quant_network: {name} has {len(both)} values; it takes 1 or 2")
        return both[0], both[1]
    return given, given


def convert_quant_network(
    network: Cell,
    quant_delay: Any = 0,
    bn_fold: bool = False,
    freeze_bn: int = 10_000_000,
    weight_bits: int = 8,
    act_bits: int = 8,
    per_channel: Any = False,
    symmetric: Any = False,
    narrow_range: Any = False,
    *,
    num_bits: Any = None,
    learned_step: bool = False,
) -> Cell:
    """Put fake quantisations into a network: it is changed, and given back.

    Weights of convolutions and dense layers are fake-quantised, and what activations give. `nn.Conv2dBnAct` and
    `nn.DenseBnAct` say what belongs together; with `bn_fold` batch normalisation is folded into the weight. Layers
    outside of these are quantised with their input. Of pairs, as `num_bits=(8, 8)`, the first is for weights. With
    `learned_step` steps are trained (LSQ), which few bits need, in the place of ranges that are observed.
    Raises ApiTypeError unless `network` is a Cell, ApiValueError for a value that cannot be.
    """
    if not isinstance(network, Cell):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ApiTypeError("MSC0823", f"convert_quant_network: network is a {type(network).__name__}, not a Cell")
    bits = (weight_bits, act_bits) if num_bits is None else _pair("num_bits", num_bits)
    named = {
        **{"bits": bits, "per_channel": per_channel, "symmetric": symmetric},
        **{"narrow_range": narrow_range, "quant_delay": quant_delay},
    }
    values = [_pair(name, value) for name, value in named.items()]
    weights, activations = (_Side(*(value[side] for value in values)) for side in (0, 1))
    if activations.per_channel:
        raise ApiValueError("MSC0824", "convert_quant_network: activations have one scale; per_channel is for weights")
    _convert(network, _Plan(weights, activations, bn_fold, freeze_bn))
    if learned_step:
        _learn_steps(network)
    network.update_parameters_name()
    return network


def _learn_steps(network: Cell) -> None:
    """Put steps that are trained in the place of observed ranges: without a sign behind ReLU and its like alone."""
    for _, cell in list(network.cells_and_names()):
        for name, inner in list(cell.name_cells().items()):
            if isinstance(inner, FakeQuantWithMinMaxObserver):
                without_sign = isinstance(cell, ActQuant) and isinstance(cell.act, _POSITIVE)
                setattr(cell, name, FakeQuantWithLearnedStep.like(inner, symmetric=not without_sign))


@dataclass(frozen=True)
class _Plan:
    weights: _Side
    activations: _Side
    bn_fold: bool
    freeze_bn: int

    def act(self, activation: Any) -> ActQuant:
        options = self.activations.options()
        del options["per_channel"]
        return ActQuant(activation, **options)


class _WithInput(Cell):
    """A layer whose input is fake-quantised, as nothing before it is known to be."""

    def __init__(self, input_quant: ActQuant, layer: Cell) -> None:
        super().__init__(auto_prefix=False)
        self.input_quant, self.layer = input_quant, layer

    def construct(self, x: Any) -> Any:
        return self.layer(self.input_quant(x))


def _convert(network: Cell, plan: _Plan) -> None:
    quantised = False
    for name, cell in list(network.name_cells().items()):
        made = _converted(cell, plan, quantised)
        quantised = isinstance(network, nn.SequentialCell) and (
            isinstance(made, ActQuant | nn.SequentialCell)
            or (quantised and isinstance(cell, nn.MaxPool2d | nn.Flatten))
        )
        if made is not cell:
            if isinstance(network, nn.SequentialCell | nn.CellList):
                network.__dict__["_cells"][name] = made
            else:
                setattr(network, name, made)
        elif not isinstance(cell, FakeQuantization):
            _convert(cell, plan)


def _converted(cell: Cell, plan: _Plan, quantised: bool) -> Cell:
    """The cell in its place; `quantised` where its input is known to be."""
    match cell:
        case nn.Conv2dBnAct():
            conv = _conv(cell.conv, cell.batchnorm, plan)
            return (
                conv
                if cell.activation is None and not cell.after_fake
                else nn.SequentialCell(conv, plan.act(cell.activation))
            )
        case nn.DenseBnAct():
            parts: list[Cell] = [_dense(cell.dense, plan)]
            parts += [] if cell.batchnorm is None else [cell.batchnorm]
            return nn.SequentialCell(*parts, plan.act(cell.activation))
        case Conv2dQuant() | DenseQuant() | ActQuant():
            return cell
        case nn.Conv2d():
            made = _conv(cell, None, plan)
            return made if quantised else _WithInput(plan.act(None), made)
        case nn.Dense():
            made = _dense(cell, plan)
            return made if quantised else _WithInput(plan.act(None), made)
        case _ if isinstance(cell, ACTIVATIONS):
            return plan.act(cell)
        case _:
            return cell


def _conv(cell: nn.Conv2d, norm: Any, plan: _Plan) -> Conv2dQuant:
    kind = Conv2dQuant if norm is None else Conv2dBnFoldQuant if plan.bn_fold else Conv2dBnWithoutFoldQuant
    more: dict[str, Any] = {"freeze_bn": plan.freeze_bn} if kind is Conv2dBnFoldQuant else {}
    made = kind(
        *(cell.in_channels, cell.out_channels, cell.kernel_size, cell.stride, cell.pad_mode, cell.padding),
        *(cell.dilation, cell.group, cell.has_bias),
        **plan.weights.options(),
        **more,
    )
    made.weight, made.bias = cell.weight, cell.bias
    if norm is not None:
        assert isinstance(made, Conv2dBnFoldQuant | Conv2dBnWithoutFoldQuant)
        made.batchnorm = norm
    return made


def _dense(cell: nn.Dense, plan: _Plan) -> DenseQuant:
    made = DenseQuant(
        cell.in_channels, cell.out_channels, has_bias=cell.has_bias, activation=cell.activation,
        **plan.weights.options(),
    )  # fmt: skip
    made.weight, made.bias = cell.weight, cell.bias
    return made


def frozen(network: Cell) -> Cell:
    """Put constants in the place of trained ranges: what the network computes is then in integers. It is changed."""
    network.set_train(False)
    for _, cell in list(network.cells_and_names()):
        for name, inner in list(cell.name_cells().items()):
            if isinstance(inner, FakeQuantization):
                setattr(cell, name, FrozenQuant(inner))
    return network


def export(
    network: Cell,
    *inputs: Any,
    file_name: str,
    mean: float | None = None,
    std_dev: float | None = None,
    file_format: str = "ONNX",
) -> str:
    """Write a trained network of fake quantisations as an integer model: QDQ as ONNX, or a form of `msc.export`.

    With `mean` and `std_dev` inputs are quantised, too: to bytes, of which `(byte - mean) / std_dev` is the real value.
    AIR and MINDIR are refused.
    """
    made = frozen(network)
    if mean is not None and std_dev is not None:
        made = _OfBytes(made, mean, std_dev)
    return import_module("msc").export(made, *inputs, file_name=file_name, file_format=file_format)


class _OfBytes(Cell):
    """A network whose inputs take the values of bytes."""

    def __init__(self, network: Cell, mean: float, std_dev: float) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.input_quant = FrozenQuant(FakeQuantWithMinMaxObserver(-mean / std_dev, (255 - mean) / std_dev))

    def construct(self, *inputs: Any) -> Any:
        return self.network(*map(self.input_quant, inputs))


def export_geir(network: Cell, *inputs: Any, file_name: str) -> str:
    """Refused in words: GEIR is a format of Ascend's graph engine."""
    del network, inputs, file_name
    raise ApiValueError(
        "MSC0824", "export_geir: GEIR is of Ascend's graph engine; export(..., file_format='ONNX') is here"
    )


class SimulatedQuantizationAwareTraining:
    """`mindspore_gs`'s algorithm: `apply` puts fake quantisations in, `convert` makes the integers.

    Keys of `config`: num_bits, quant_delay, quant_dtype, per_channel, symmetric, narrow_range as pairs, **activations
    first**,
    and freeze_bn, bn_fold, one_conv_fold, enable_fusion.
    """

    LEARNS: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self._config: dict[str, Any] = {
            **{"num_bits": (8, 8), "quant_delay": (0, 0), "per_channel": (False, True), "symmetric": (False, True)},
            **{"narrow_range": (False, False), "freeze_bn": 10_000_000, "bn_fold": False},
        }
        for name, value in (config or {}).items():
            if name not in (*self._config, "quant_dtype", "one_conv_fold", "enable_fusion"):
                raise ApiValueError("MSC0824", f"SimulatedQuantizationAwareTraining: there is no '{name}'")
            self._config[name] = value

    def __getattr__(self, name: str) -> Any:
        """set_act_symmetric(True), set_weight_per_channel(...), set_bn_fold(...) and their like."""
        side, _, key = name.removeprefix("set_").partition("_")
        if not name.startswith("set_"):
            raise AttributeError(name)
        whole = name.removeprefix("set_")
        if side in ("act", "weight") and key in self._config:
            return partial(self._set, key, 0 if side == "act" else 1)
        if whole in (*self._config, "one_conv_fold", "enable_fusion"):
            return partial(self._config.__setitem__, whole)
        raise AttributeError(name)

    def _set(self, key: str, side: int, value: Any) -> None:
        pair = list(_pair(key, self._config[key]))
        pair[side] = value
        self._config[key] = tuple(pair)

    def apply(self, network: Cell) -> Cell:
        """Put fake quantisations in."""
        pairs: dict[str, Any] = {
            key: _pair(key, self._config[key])[::-1]
            for key in ("num_bits", "quant_delay", "per_channel", "symmetric", "narrow_range")
        }
        pairs |= {"bn_fold": self._config["bn_fold"], "freeze_bn": self._config["freeze_bn"]}
        return convert_quant_network(network, **pairs, learned_step=self.LEARNS)

    def convert(self, network: Cell) -> Cell:
        """Put constants in the place of trained ranges."""
        return frozen(network)


class LearnedStepSizeQuantizationAwareTraining(SimulatedQuantizationAwareTraining):
    """`mindspore_gs`'s algorithm with steps that are trained (LSQ)."""

    LEARNS = True
