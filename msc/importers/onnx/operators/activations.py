"""Activations, and softmax."""

from __future__ import annotations

from functools import partial

from msc.dialects import ms
from msc.dialects.ms.base import MsOp
from msc.importers.onnx.node import Node
from msc.importers.onnx.registry import importer
from msc.importers.onnx.values import OnnxValue


def _plain(operation: type[MsOp], **defaults: float):
    """An importer of one operand whose attributes are the operation's properties."""

    def import_(node: Node) -> OnnxValue:
        return node(operation, node[0], **{name: node.real(name, value) for name, value in defaults.items()})

    return import_


importer("Elu")(_plain(ms.EluOp, alpha=1.0))
importer("Celu")(_plain(ms.CeluOp, alpha=1.0))
importer("LeakyRelu")(_plain(ms.LeakyReluOp, alpha=0.01))
importer("HardSigmoid")(_plain(ms.HardSigmoidOp, alpha=0.2, beta=0.5))
importer("HardSwish")(_plain(ms.HardSwishOp))
importer("Mish")(_plain(ms.MishOp))
importer("Softsign")(_plain(ms.SoftsignOp))


@importer("Selu")
def _selu(node: Node) -> OnnxValue:
    """With its usual constants the operation, with others a scaled Elu."""
    alpha, gamma = node.real("alpha", 1.67326319217681884765625), node.real("gamma", 1.05070102214813232421875)
    if not node.given("alpha") and not node.given("gamma"):
        return node(ms.SeluOp, node[0])
    return node(ms.MulOp, node(ms.EluOp, node[0], alpha=alpha), gamma)


@importer("Gelu")
def _gelu(node: Node) -> OnnxValue:
    return node(ms.GeluOp, node[0], approximate=node.choice("approximate", "none", ("none", "tanh")))


@importer("Swish")
def _swish(node: Node) -> OnnxValue:
    alpha = node.real("alpha", 1.0)
    if alpha == 1.0:
        return node(ms.SiluOp, node[0])
    return node(ms.MulOp, node[0], node(ms.SigmoidOp, node(ms.MulOp, node[0], alpha)))


@importer("ThresholdedRelu")
def _thresholded_relu(node: Node) -> OnnxValue:
    return node(
        ms.SelectOp, node(ms.GreaterOp, node[0], node.real("alpha", 1.0)), node[0], node.scalar(0, node[0].dtype)
    )


@importer("Shrink")
def _shrink(node: Node) -> OnnxValue:
    """Integers through float, since the attributes may be fractions."""
    dtype = node[0].dtype
    x = node[0] if dtype[0] in "fb" else node.cast(node[0], "f64")
    bias, limit = node.real("bias", 0.0), node.real("lambd", 0.5)
    above = node(ms.SelectOp, node(ms.GreaterOp, x, limit), node(ms.SubOp, x, bias), node.scalar(0, x.dtype))
    return node.cast(node(ms.SelectOp, node(ms.LessOp, x, -limit), node(ms.AddOp, x, bias), above), dtype)


@importer("PRelu")
def _prelu(node: Node) -> OnnxValue:
    """A slope of rank 1 broadcasts along the last axis in ONNX, along the channels in `ms.prelu`."""
    x, slope = node[0], node[1]
    if slope.rank == 1 and x.rank > 1 and node.opset >= 7:
        slope = node.reshape(slope, (*(1 for _ in range(x.rank - 1)), *slope.shape))
    return node(ms.PreluOp, x, slope)


def _along_axis(operation: type[MsOp], default: int, node: Node) -> OnnxValue:
    return node(operation, node[0], axis=node.int_("axis", default))


def _flattened(operation: type[MsOp], node: Node) -> OnnxValue:
    """Before opset 13: over all axes from `axis` on, as if they were one."""
    x = node[0]
    flat = node(ms.FlattenOp, x, axis=node.int_("axis", 1))
    return node.reshape(node(operation, flat, axis=-1), node.shape_of(x))


for _name, _operation in {"Softmax": ms.SoftmaxOp, "LogSoftmax": ms.LogSoftmaxOp}.items():
    importer(_name)(partial(_flattened, _operation))
    importer(_name, since=13)(partial(_along_axis, _operation, -1))


def _hard(node: Node, x: OnnxValue, axis: int) -> OnnxValue:
    shape = node.shape_of(x)
    first = node(ms.ArgmaxOp, x, axis=axis, keep_dims=True)
    places = node(ms.IotaOp, shape=shape, axis=axis, dtype=first.type.element_type)
    return node.cast(node(ms.EqualOp, places, first), x.dtype)


@importer("Hardmax")
def _hardmax_flat(node: Node) -> OnnxValue:
    flat = node(ms.FlattenOp, node[0], axis=node.int_("axis", 1))
    return node.reshape(_hard(node, flat, 1), node.shape_of(node[0]))


@importer("Hardmax", since=13)
def _hardmax(node: Node) -> OnnxValue:
    return _hard(node, node[0], node.int_("axis", -1))
