"""Composite activations: an expander rewrites each into basic operations. Floats in, the same shape and type out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def

from msc.dialects.ms.base import TensorOp
from msc.dialects.ms.elementwise import check_representable
from msc.dialects.ms.properties import choice_property, flag_property, int_property, optional_real, real_property
from msc.dialects.ms.shapes import broadcast_shapes, normal_axis, same_shape, same_size, shape_text, tensor_type
from msc.ir.errors import InvalidAttribute, ShapeConflict


class ActivationOp(TensorOp):
    """Base: one float tensor in, one of the same type out."""

    EXAMPLE: ClassVar[str] = "2x3xT"

    x = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (tensor_type(self.expect_dtype(0, "a float"), self.shape(0)),)


@irdl_op_definition
class GeluOp(ActivationOp):
    """x / 2 * (1 + erf(x / sqrt 2)), or with `approximate = "tanh"` its approximation
    x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))). MindSpore GeLU, ONNX Gelu (Hendrycks and Gimpel, 2016).
    """

    name = "ms.gelu"
    approximate = choice_property("none")
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"approximate": ("none", "tanh")}


@irdl_op_definition
class SiluOp(ActivationOp):
    """x * sigmoid(x) (swish). MindSpore SiLU, ONNX Swish."""

    name = "ms.silu"


@irdl_op_definition
class Relu6Op(ActivationOp):
    """min(max(x, 0), 6). MindSpore ReLU6."""

    name = "ms.relu6"


@irdl_op_definition
class MishOp(ActivationOp):
    """x * tanh(softplus(x)). MindSpore Mish, ONNX Mish."""

    name = "ms.mish"


@irdl_op_definition
class SoftsignOp(ActivationOp):
    """x / (1 + |x|). MindSpore Softsign, ONNX Softsign."""

    name = "ms.softsign"


@irdl_op_definition
class SeluOp(ActivationOp):
    """1.0507009873554805 * (x for x > 0, 1.6732632423543772 * (e^x - 1) elsewhere). MindSpore SeLU, ONNX Selu."""

    name = "ms.selu"


@irdl_op_definition
class HardSwishOp(ActivationOp):
    """x * relu6(x + 3) / 6. MindSpore HSwish, ONNX HardSwish."""

    name = "ms.hard_swish"


@irdl_op_definition
class LeakyReluOp(ActivationOp):
    """x for x >= 0, alpha * x elsewhere. MindSpore LeakyReLU, ONNX LeakyRelu."""

    name = "ms.leaky_relu"
    alpha = real_property(0.2)


@irdl_op_definition
class EluOp(ActivationOp):
    """x for x > 0, alpha * (e^x - 1) elsewhere. MindSpore Elu, ONNX Elu."""

    name = "ms.elu"
    alpha = real_property(1.0)


@irdl_op_definition
class CeluOp(ActivationOp):
    """max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0). MindSpore CeLU, ONNX Celu."""

    name = "ms.celu"
    alpha = real_property(1.0)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if self.real("alpha") == 0:
            raise InvalidAttribute("ms.celu: alpha is 0, by which x is divided")
        return super().infer()


@irdl_op_definition
class HardSigmoidOp(ActivationOp):
    """max(0, min(1, alpha * x + beta)). MindSpore HSigmoid (alpha = 1/6), ONNX HardSigmoid."""

    name = "ms.hard_sigmoid"
    alpha = real_property(1 / 6)
    beta = real_property(0.5)


@irdl_op_definition
class PreluOp(TensorOp):
    """x for x >= 0, slope * x elsewhere.

    A slope of rank 1 has one element, or one a channel (axis 1 of x); of another rank, it broadcasts to x.
    Both of one number type. MindSpore PReLU, ONNX PRelu.
    """

    name = "ms.prelu"
    EXAMPLE: ClassVar[str] = "1x2x3x3xT 2xT"
    x = operand_def(TensorType)
    slope = operand_def(TensorType)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_one_dtype("a number")
        x, slope = self.shape(0), self.shape(1)
        if len(slope) == 1 and len(x) > 1:
            fits = slope[0] == 1 or same_size(slope[0], x[1])
        else:
            fits = len(slope) <= len(x) and same_shape(broadcast_shapes(self.name, x, slope), x)
        if not fits:
            raise ShapeConflict(f"ms.prelu: a slope of {shape_text(slope)} does not fit x of {shape_text(x)}")
        return (tensor_type(dtype, x),)


@irdl_op_definition
class ClipOp(TensorOp):
    """min(max(x, `min`), `max`), without the bound that is not given; NaN stays NaN; any number type.

    The derivative on a bound is 1; with `open` it is 0.
    MindSpore clip_by_value, ONNX Clip.
    """

    name = "ms.clip"
    EXAMPLE: ClassVar[str] = "2x3xT {min = 0.0, max = 6.0}"
    x = operand_def(TensorType)
    lower = optional_real("min")
    upper = optional_real("max")
    open = flag_property(False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        dtype = self.expect_dtype(0, "a number")
        check_representable(self, "min", dtype)
        check_representable(self, "max", dtype)
        return (tensor_type(dtype, self.shape(0)),)


class AlongAxisOp(TensorOp):
    """Base: a float tensor is normalised along one axis."""

    EXAMPLE: ClassVar[str] = "2x10xT {axis = -1}"

    x = operand_def(TensorType)
    axis = int_property(-1)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        normal_axis(self.name, self.int_("axis"), len(self.shape(0)))
        return (tensor_type(self.expect_dtype(0, "a float"), self.shape(0)),)


@irdl_op_definition
class SoftmaxOp(AlongAxisOp):
    """e^(x - max) / sum e^(x - max) along `axis`. MindSpore Softmax, ONNX Softmax."""

    name = "ms.softmax"


@irdl_op_definition
class LogSoftmaxOp(AlongAxisOp):
    """The logarithm of the softmax along `axis`: x - max - log sum e^(x - max). MindSpore, ONNX LogSoftmax."""

    name = "ms.log_softmax"
