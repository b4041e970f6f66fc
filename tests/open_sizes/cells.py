"""Random Cells called with one shape after another: graphs of open sizes must give what PyNative mode gives."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import msc
from msc import Tensor, nn, ops

WIDTH, CLASSES = 6, 4


class Applied(nn.Cell):
    """A function as a layer."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        return self.function(x)


class Attention(nn.Cell):
    """Each place of a sequence looks at those before it, in two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Dense(WIDTH, WIDTH), nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Any) -> Any:
        batch, length, _ = x.shape
        parts = (batch, length, 2, WIDTH // 2)
        q = self.queries(x).reshape(parts).transpose(0, 2, 1, 3)
        k = self.keys(x).reshape(parts).transpose(0, 2, 3, 1)
        places = ops.arange(length)
        later = places.reshape(1, -1) > places.reshape(-1, 1)
        scores = ops.masked_fill(ops.matmul(q, k) * 0.5, later, -1e9)
        mixed = ops.matmul(ops.softmax(scores, -1), x.reshape(parts).transpose(0, 2, 1, 3))
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)


class Positions(nn.Cell):
    """Adds a row of a table for each place."""

    def __init__(self) -> None:
        super().__init__()
        self.table = msc.Parameter(np.random.normal(0, 1, (512, WIDTH)).astype(np.float32), name="table")

    def construct(self, x: Any) -> Any:
        return x + self.table[: x.shape[1]]


Layers = Sequence[Callable[[], nn.Cell]]
_ANY: Layers = (
    nn.ReLU,
    nn.Tanh,
    nn.GELU,
    lambda: Applied(lambda x: x * 0.5 + ops.sigmoid(x)),
    lambda: Applied(lambda x: x - x.mean(-1, keep_dims=True)),
    lambda: Applied(lambda x: ops.where(x > 0, x, x * x.shape[0] / 8)),
    lambda: Applied(lambda x: ops.cat((x, x), 0)[: x.shape[0]]),
    lambda: Applied(lambda x: x / x.shape[0]),
    lambda: Applied(lambda x: x + ops.zeros_like(x) + ops.ones(x.shape)),
)
LAYERS: Mapping[str, Layers] = {
    "rows": (*_ANY, lambda: nn.Dense(WIDTH, WIDTH), lambda: nn.LayerNorm((WIDTH,)), lambda: nn.BatchNorm1d(WIDTH)),
    "sequences": (
        *_ANY,
        *(Attention, Positions),
        lambda: nn.Dense(WIDTH, WIDTH),
        lambda: nn.LayerNorm((WIDTH,)),
        lambda: Applied(lambda x: x.transpose(0, 2, 1).reshape(x.shape)),
        lambda: Applied(lambda x: ops.cumsum(x, 1)),
        lambda: Applied(lambda x: ops.softmax(x, 1)),
        lambda: Applied(lambda x: ops.flip(x, (1,))),
    ),
    "images": (
        *_ANY,
        lambda: nn.Conv2d(WIDTH, WIDTH, 3),
        lambda: nn.Conv2d(WIDTH, WIDTH, 3, group=WIDTH, has_bias=True),
        lambda: nn.Conv2d(WIDTH, WIDTH, 3, stride=2),
        lambda: nn.BatchNorm2d(WIDTH),
        lambda: nn.MaxPool2d(2, 2),
        lambda: nn.AvgPool2d(2, 2),
    ),
}


class Network(nn.Cell):
    """Layers, then a mean over all but rows and features, and a classifier."""

    def __init__(self, layers: Sequence[nn.Cell], kind: str) -> None:
        super().__init__()
        self.layers, self.kind = nn.CellList(layers), kind
        self.head = nn.Dense(WIDTH, CLASSES)

    def construct(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        if self.kind == "sequences":
            x = x.mean(1)
        elif self.kind == "images":
            x = x.mean((2, 3))
        return self.head(x)


@dataclass(frozen=True)
class Calls:
    """What came of the calls of a Cell."""

    served: int
    """Calls that a graph of open sizes served."""
    compiled: int
    story: str


def try_cell(seed: int, *, shapes: int = 4) -> Calls:
    """Call a drawn Cell, or steps that train it, in both modes. Raises AssertionError where they differ."""
    random = Random(seed)
    kind = random.choice(list(LAYERS))
    layers = [random.choice(LAYERS[kind]) for _ in range(random.randint(1, 3))]
    trains, two_open = random.random() < 0.4, random.random() < 0.5
    sizes = [_shape(random, kind, two_open) for _ in range(shapes)]
    nets = []
    for _ in range(2):
        np.random.seed(seed)
        msc.set_seed(seed)
        nets.append(Network([layer() for layer in layers], kind).set_train(trains))
    runs = [_step(net) if trains else net.construct for net in nets]
    compiled = msc.jit(runs[1])
    rng = np.random.default_rng(seed)
    for shape in sizes:
        x = Tensor(rng.normal(0, 1, shape).astype(np.float32))
        given = (x, Tensor(rng.integers(0, CLASSES, shape[0]).astype(np.int32))) if trains else (x,)
        wanted, found = (run(*given).asnumpy() for run in (runs[0], compiled))
        np.testing.assert_allclose(found, wanted, 2e-4, 2e-5, err_msg=f"seed {seed}, shape {shape}")
    for a, b in zip(nets[0].get_parameters(), nets[1].get_parameters(), strict=True):
        np.testing.assert_allclose(b.asnumpy(), a.asnumpy(), 2e-3, 2e-4, err_msg=f"seed {seed}, {a.name}")
    story = msc.jit.explain(compiled)
    return Calls(story.count("read: "), story.count("compiled: for "), f"{kind}, trains: {trains}, {sizes}\n{story}")


def _shape(random: Random, kind: str, two_open: bool) -> tuple[int, ...]:
    rows = random.randint(2, 20)
    match kind:
        case "rows":
            return rows, WIDTH
        case "sequences":
            return (rows if two_open else 3), random.randint(2, 20), WIDTH
        case _:
            side = random.randint(8, 20) if two_open else 12
            return rows, WIDTH, side, side


def _step(net: nn.Cell) -> Callable[[Any, Any], Any]:
    """A step of gradient descent."""
    optimizer = nn.Momentum(net.trainable_params(), 0.02, 0.9)

    def loss_of(x: Any, labels: Any) -> Any:
        return ops.cross_entropy(net(x), labels)

    gradients = msc.value_and_grad(loss_of, None, optimizer.parameters)

    def step(x: Any, labels: Any) -> Any:
        loss, found = gradients(x, labels)
        optimizer(found)
        return loss

    return step
