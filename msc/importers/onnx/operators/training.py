"""The update rules of ai.onnx.preview.training, each for any number of tensors."""

from __future__ import annotations

from collections.abc import Callable

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue

DOMAIN = "ai.onnx.preview.training"

Update = Callable[[Node, OnnxValue, OnnxValue, list[OnnxValue]], list[OnnxValue]]
"""Of the learning rate, the step's number, and one tensor with its gradient and states: the new tensor and states."""


def _updated(node: Node, states: int, update: Update) -> list[OnnxValue]:
    """Inputs are R, T, then all tensors, all gradients, all of each state; outputs in the same order."""
    rate, step = node[0], node[1]
    count = (len(node) - 2) // (2 + states)
    groups = [[node[2 + place * count + i] for place in range(2 + states)] for i in range(count)]
    results = [update(node, rate, step, group) for group in groups]
    return [result[place] for place in range(1 + states) for result in results]


def _scaled(node: Node, x: OnnxValue, factor: OnnxValue | float) -> OnnxValue:
    return node(ms.MulOp, x, factor)


def _add(node: Node, a: OnnxValue, b: OnnxValue) -> OnnxValue:
    return node(ms.AddOp, a, b)


def _regularised(node: Node, gradient: OnnxValue, x: OnnxValue) -> OnnxValue:
    return _add(node, gradient, _scaled(node, x, node.real("norm_coefficient", 0.0)))


@importer("Adagrad", domain=DOMAIN)
def _adagrad(node: Node) -> list[OnnxValue]:
    def update(node: Node, rate: OnnxValue, step: OnnxValue, group: list[OnnxValue]) -> list[OnnxValue]:
        x, gradient, squares = group
        decay = _add(
            node, _scaled(node, node.cast(step, x.dtype), node.real("decay_factor", 0.0)), node.scalar(1, x.dtype)
        )
        gradient = _regularised(node, gradient, x)
        squares = _add(node, squares, node(ms.SquareOp, gradient))
        size = node(ms.AddOp, node(ms.SqrtOp, squares), node.real("epsilon", 0.0))
        move = node(ms.DivOp, _scaled(node, gradient, node(ms.DivOp, rate, decay)), size)
        return [node(ms.SubOp, x, move), squares]

    return _updated(node, 1, update)


@importer("Adam", domain=DOMAIN)
def _adam(node: Node) -> list[OnnxValue]:
    """Kingma and Ba (2015)."""
    alpha, beta = node.real("alpha", 0.9), node.real("beta", 0.999)

    def update(node: Node, rate: OnnxValue, step: OnnxValue, group: list[OnnxValue]) -> list[OnnxValue]:
        x, gradient, mean, square = group
        gradient = _regularised(node, gradient, x)
        mean = _add(node, _scaled(node, mean, alpha), _scaled(node, gradient, 1 - alpha))
        square = _add(node, _scaled(node, square, beta), _scaled(node, node(ms.SquareOp, gradient), 1 - beta))
        count = node.cast(step, x.dtype)
        corrected = node(
            ms.MulOp, rate, node(ms.DivOp, node(ms.SqrtOp, _rest(node, beta, count)), _rest(node, alpha, count))
        )
        chosen = node(ms.SelectOp, node(ms.GreaterOp, step, 0), corrected, rate)
        size = node(ms.AddOp, node(ms.SqrtOp, square), node.real("epsilon", 0.0))
        moved = node(ms.SubOp, x, node(ms.DivOp, _scaled(node, mean, chosen), size))
        return [_scaled(node, moved, 1 - node.real("norm_coefficient_post", 0.0)), mean, square]

    return _updated(node, 2, update)


def _rest(node: Node, base: float, count: OnnxValue) -> OnnxValue:
    """1 - base to the count."""
    power = node(ms.PowOp, node.scalar(base, count.dtype), count)
    return node(ms.SubOp, node.scalar(1, count.dtype), power)


@importer("Momentum", domain=DOMAIN)
def _momentum(node: Node) -> list[OnnxValue]:
    """Standard, or Nesterov's."""
    alpha, beta = node.real("alpha", 0.0), node.real("beta", 0.0)

    def update(node: Node, rate: OnnxValue, step: OnnxValue, group: list[OnnxValue]) -> list[OnnxValue]:
        x, gradient, velocity = group
        gradient = _regularised(node, gradient, x)
        weight = node(ms.SelectOp, node(ms.GreaterOp, step, 0), node.scalar(beta, x.dtype), node.scalar(1, x.dtype))
        velocity = _add(node, _scaled(node, velocity, alpha), _scaled(node, gradient, weight))
        if node.choice("mode", "standard", ("standard", "nesterov")) == "nesterov":
            return [
                node(ms.SubOp, x, _scaled(node, _add(node, gradient, _scaled(node, velocity, alpha)), rate)),
                velocity,
            ]
        return [node(ms.SubOp, x, _scaled(node, velocity, rate)), velocity]

    return _updated(node, 1, update)
