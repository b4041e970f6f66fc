"""Methods of tensors that are no functions: conversions, copies, questions, and those that change the tensor."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from msc.frontend import dtypes
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import DType, DTypeLike
from msc.frontend.parameter import Parameter
from msc.frontend.tensor import Tensor, tensor_method, tensor_property, value_of
from msc.ops import activation, arithmetic
from msc.ops.creation import full_like
from msc.ops.operands import cast, only_tensor
from msc.ops.shapes import broadcast_to

__all__ = [
    "is_floating_point", "is_tensor", "itemset", "numel", "scalar_to_tensor", "stop_gradient", "tuple_to_array",
]  # fmt: skip


def _converting(dtype: DType) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return cast(self, dtype)

    convert.__doc__ = f"The elements in {dtype}."
    return convert


for _name, _dtype in {
    "bool": dtypes.bool_,
    "byte": dtypes.uint8,
    "short": dtypes.int16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "float": dtypes.float32,
    "double": dtypes.float64,
}.items():
    tensor_method(_name)(_converting(_dtype))


@tensor_method("type_as", "astype_as")
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the element type of another tensor."""
    return cast(self, other.dtype)


@tensor_method("copy", "clone")
def copied(self: Tensor) -> Tensor:
    """A tensor of the same elements: what is assigned to one is not to the other."""
    return self.value() if isinstance(self, Parameter) else value_of(self)


@tensor_method("detach", "stop_gradient")
def stop_gradient(value: Tensor) -> Tensor:
    """The tensor, which counts as a constant where a gradient is taken."""
    return apply("stop_gradient", value)


@tensor_method("contiguous", "init_data", "to_tensor", "cpu")
def itself(self: Tensor, *_: Any) -> Tensor:
    """The tensor itself."""
    return self


@tensor_method("value")
def value(self: Tensor) -> Tensor:
    """A tensor of the value that the tensor has now."""
    return value_of(self)


@tensor_property("has_init")
def has_init(self: Tensor) -> bool:
    """False: the elements of a tensor that is made with an initialiser exist from the start."""
    return False


def is_tensor(obj: object) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


def scalar_to_tensor(input_x: bool | float, dtype: DTypeLike = dtypes.float32) -> Tensor:
    """A number as a tensor of rank 0."""
    return Tensor(input_x, dtype)


def tuple_to_array(input_x: tuple[float, ...]) -> Tensor:
    """Numbers as a vector."""
    return Tensor(input_x)


@tensor_method("dim")
def dim(self: Tensor) -> int:
    """The number of axes."""
    return self.ndim


@tensor_method("numel", "nelement")
def numel(self: Tensor) -> int:
    """The number of elements."""
    return self.size


@tensor_method("is_floating_point")
def is_floating_point(self: Tensor) -> bool:
    """Whether the elements are floats."""
    return self.dtype.is_float


@tensor_method("is_signed")
def is_signed(self: Tensor) -> bool:
    """Whether the elements may be negative."""
    return self.dtype.is_signed


@tensor_method("is_contiguous")
def is_contiguous(self: Tensor) -> bool:
    """True: tensors have no strides of their own."""
    return True


def changing(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The method with `_` behind its name: the tensor gets the result as its value."""

    def change(self: Tensor, *args: Any, **keywords: Any) -> Tensor:
        self.replace(broadcast_to(cast(function(self, *args, **keywords), self.dtype), self.shape).content)
        return self

    change.__doc__ = function.__doc__
    vars(change)["__signature__"] = signature(function)
    return change


def _copied_from(self: Tensor, other: Any) -> Tensor:
    """The elements of another tensor."""
    return only_tensor(other, "copy_")


def _zeroed(self: Tensor) -> Tensor:
    """0 everywhere."""
    return full_like(self, 0)


for _name, _function in {
    "add_": arithmetic.add,
    "sub_": arithmetic.sub,
    "mul_": arithmetic.mul,
    "div_": arithmetic.div,
    "pow_": arithmetic.pow,
    "clamp_": activation.clamp,
    "fill_": full_like,
    "zero_": _zeroed,
    "copy_": _copied_from,
}.items():
    tensor_method(_name)(changing(_function))


@tensor_method("assign_value")
def assign_value(self: Tensor, value: Any) -> Tensor:
    """Give the tensor another value."""
    self.replace(value_of(only_tensor(value, "assign_value")).content)
    return self


@tensor_method("itemset")
def itemset(self: Tensor, *args: Any) -> Tensor:
    """A tensor with another element at an index; `itemset(value)` for one of one element."""
    changed = copied(self)
    *index, value = args
    changed[tuple(index) if len(index) != 1 else index[0]] = value
    return changed
