"""Normalisations, of floats; composite: expanders rewrite them into reductions and element-wise operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def

from msc.dialects.ms.base import MsOp, TensorOp
from msc.dialects.ms.properties import int_property, ints_property, real_property, required_int
from msc.dialects.ms.shapes import Shape, normal_axes, normal_axis, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict


class NormalisationOp(TensorOp):
    """Base: the result has the type of x; `scales` says which shape the operands after x have."""

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_one_dtype("a float")
        if self.real("epsilon") < 0:
            raise InvalidAttribute(f"{self.name}: epsilon is {self.real('epsilon')}; it must not be negative")
        shape = self.scales()
        for index in range(1, len(self.operands)):
            self.expect_shape(index, shape, self.names()[index])
        return (tensor_type(dtype, self.shape(0)),)

    def names(self) -> tuple[str, ...]:
        """What the operands are called."""
        return tuple(name for name, _ in self.get_irdl_definition().operands)

    def scales(self) -> Shape:
        """The shape of every operand after x. Raises InvalidAttribute, ShapeConflict."""
        raise TypeError(f"{self.name} does not say which shape its operands have")

    def channels(self) -> Shape:
        """The shape `[c]` of what there is one of a channel, axis 1."""
        shape = self.shape(0)
        if len(shape) < 2:
            raise ShapeConflict(f"{self.name}: operand 0 is {shape_text(shape)}; it must be [n, c, ...]")
        return (shape[1],)


@irdl_op_definition
class BatchNormOp(NormalisationOp):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, with one of each a channel (axis 1 of x); inference.

    MindSpore BatchNorm with is_training=False, ONNX BatchNormalization (Ioffe and Szegedy, 2015).
    """

    name = "ms.batch_norm"
    EXAMPLE: ClassVar[str] = "1x3x4x4xT 3xT 3xT 3xT 3xT"
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    offset = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = real_property(1e-5)

    def scales(self) -> Shape:
        return self.channels()


@irdl_op_definition
class LayerNormOp(NormalisationOp):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, over the axes from `begin_norm_axis` on.

    gamma and beta have the shape of those axes. MindSpore LayerNorm, ONNX LayerNormalization (Ba et al., 2016).
    """

    name = "ms.layer_norm"
    EXAMPLE: ClassVar[str] = "2x3x8xT 8xT 8xT"
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = opt_operand_def(TensorType)
    begin_norm_axis = int_property(-1)
    epsilon = real_property(1e-7)

    def scales(self) -> Shape:
        return tail(self)


@irdl_op_definition
class RmsNormOp(NormalisationOp):
    """x / sqrt(mean of x squared + epsilon) * gamma, over the axes from `begin_norm_axis` on, whose shape gamma has.

    MindSpore RmsNorm, ONNX RMSNormalization (Zhang and Sennrich, 2019).
    """

    name = "ms.rms_norm"
    EXAMPLE: ClassVar[str] = "2x3x8xT 8xT"
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    begin_norm_axis = int_property(-1)
    epsilon = real_property(1e-6)

    def scales(self) -> Shape:
        return tail(self)


@irdl_op_definition
class GroupNormOp(NormalisationOp):
    """Normalisation over the spatial axes and over groups of channels, then gamma and beta, one of each a channel.

    `num_groups` divides the channels of x `[n, c, ...]`.
    MindSpore GroupNorm, ONNX GroupNormalization (Wu and He, 2018).
    """

    name = "ms.group_norm"
    EXAMPLE: ClassVar[str] = "1x4x3x3xT 4xT 4xT {num_groups = 2}"
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    num_groups = required_int()
    epsilon = real_property(1e-5)

    def scales(self) -> Shape:
        (channels,), groups = self.channels(), self.int_("num_groups")
        if groups < 1 or (channels > 0 and channels % groups):
            raise InvalidAttribute(f"ms.group_norm: num_groups {groups} does not divide the {channels} channels")
        return (channels,)


@irdl_op_definition
class InstanceNormOp(NormalisationOp):
    """Normalisation over the spatial axes of x `[n, c, spatial...]`, then gamma and beta, one of each a channel.

    MindSpore InstanceNorm, ONNX InstanceNormalization (Ulyanov et al., 2016).
    """

    name = "ms.instance_norm"
    EXAMPLE: ClassVar[str] = "1x3x4x4xT 3xT 3xT"
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    epsilon = real_property(1e-5)

    def scales(self) -> Shape:
        if len(self.shape(0)) < 3:
            raise ShapeConflict(
                f"ms.instance_norm: operand 0 is {shape_text(self.shape(0))}, which has no spatial axes"
            )
        return self.channels()


@irdl_op_definition
class L2NormalizeOp(NormalisationOp):
    """x / sqrt(max(sum of x squared over `axis`, epsilon)). MindSpore L2Normalize, ONNX LpNormalization with p=2."""

    name = "ms.l2_normalize"
    EXAMPLE: ClassVar[str] = "2x8xT {axis = 1}"
    x = operand_def(TensorType)
    axis = ints_property(0)
    epsilon = real_property(1e-4)

    def scales(self) -> Shape:
        normal_axes(self.name, self.ints("axis"), len(self.shape(0)))
        return ()


def tail(op: MsOp) -> Shape:
    """The shape of the axes of x from `begin_norm_axis` on."""
    shape = op.shape(0)
    return shape[normal_axis(op.name, op.int_("begin_norm_axis"), len(shape), "begin_norm_axis") :]
