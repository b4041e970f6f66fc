"""Everything that can be measured, by name.

To add a network: subclass ``GraphModel`` (name, inputs, the network in ONNX operators), and list it here.
"""

from __future__ import annotations

from benchmarks.exported import NAMES, Exported
from benchmarks.layers import LAYERS
from benchmarks.mlperf_tiny import Autoencoder, DsCnn, MobileNetV1, ResNet8
from benchmarks.model import Model
from benchmarks.open_models import OPEN_MODELS
from benchmarks.operators import SINGLE_OPERATORS
from benchmarks.quantised_models import QUANTISED_NETWORKS, QUANTISED_SHAPES
from benchmarks.sample_models import Attention, LeNet5, Mlp, ResNetTiny

_ALL: tuple[Model, ...] = (
    *(LeNet5(), LeNet5(32), Mlp(), Mlp(64), ResNetTiny(), Attention()),
    *(ResNet8(), DsCnn(), MobileNetV1(), Autoencoder()),
    *(Exported(name) for name in NAMES),
    *LAYERS,
    *SINGLE_OPERATORS,
    *OPEN_MODELS,
    *QUANTISED_NETWORKS,
    *QUANTISED_SHAPES,
)

MODELS: dict[str, Model] = {model.name: model for model in _ALL}

OPERATORS: tuple[str, ...] = tuple(model.name for model in SINGLE_OPERATORS)
"""The models of one operator, by name."""

OPEN: tuple[str, ...] = tuple(model.name for model in OPEN_MODELS)
"""The models whose sizes a call decides, by name."""

QUANTISED: tuple[str, ...] = tuple(model.name for model in (*QUANTISED_NETWORKS, *QUANTISED_SHAPES))
"""The models in bytes, by name."""
