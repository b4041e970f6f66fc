"""Tensor's methods under MindSpore's names that are functions of `ops`, and those that change a tensor in place."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from inspect import Parameter as Formal
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np

from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.parameter import Parameter
from msc.frontend.settings import unused
from msc.frontend.tensor import Number, Tensor, concrete, tensor_method, tensor_property
from msc.ops import (
    activation,
    arithmetic,
    compositions,
    creation,
    decompositions,
    draws,
    elementwise,
    images,
    joining,
    linear,
    methods,
    ordering,
    random,
    reductions,
    sampling,
    scattering,
    selection,
    statistics,
    unary,
)
from msc.ops.operands import cast
from msc.ops.operators import arithmetic as operators
from msc.ops.operators import functions, shapes
from msc.ops.outside import on_arrays
from msc.ops.shapes import axis_of, broadcast_to, reshape, sizes_of, swapaxes
from msc.support.wording import a

_FUNCTIONS: dict[ModuleType, str] = {
    activation: "hardshrink",
    compositions: "dsplit fmax fmin ger logaddexp sinc",
    decompositions: (
        "cholesky cholesky_inverse cholesky_solve det geqrf inverse log_matrix_determinant logdet lstsq lu_solve "
        "matrix_determinant matrix_power orgqr ormqr slogdet svd"
    ),
    elementwise: "real",
    functions: "soft_shrink",
    images: "unfold",
    joining: "fliplr flipud reverse",
    operators: "lerp xlogy",
    ordering: "cummax cummin median",
    random: "multinomial",
    sampling: "col2im",
    selection: "argwhere",
    shapes: "reverse_sequence",
    statistics: "unsorted_segment_max unsorted_segment_min unsorted_segment_prod",
    unary: "invert",
}

for _module, _names in _FUNCTIONS.items():
    for _name in _names.split():
        tensor_method(_name)(getattr(_module, _name))
tensor_method("inv")(compositions.inv)
for _name in ("sub", "mul", "max", "min"):
    tensor_method(f"scatter_{_name}")(getattr(scattering, f"tensor_scatter_{_name}"))
for _name in "add sub mul div pow".split():
    tensor_method(f"tensor_{_name}")(getattr(arithmetic, _name))
tensor_method("scatter_div", "tensor_scatter_div")(statistics.tensor_scatter_div)
tensor_method("pin_memory")(methods.itself)
tensor_method("ndimension")(methods.dim)


def _above(module: str) -> Any:
    """A package above this one, which `import msc` does not load."""
    return import_module(f"msc.{module}")


@tensor_method("allclose")
def allclose(self: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close to those of another tensor."""
    return _above("numpy").allclose(self, other, rtol, atol, equal_nan)


@tensor_method("choose")
def choose(self: Tensor, choices: Any, mode: str = "clip") -> Tensor:
    """The elements of the choices that the elements number."""
    return _above("numpy").choose(self, choices, mode)


@tensor_method("searchsorted")
def searchsorted(self: Tensor, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where values would stand among the sorted elements."""
    return _above("numpy").searchsorted(self, v, side, sorter)


@tensor_method("kthvalue")
def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest elements along an axis, and their places."""
    return _above("mint").kthvalue(self, k, dim, keepdim)


@tensor_method("triangular_solve")
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """The solution of a triangular system, and its matrix."""
    return _above("mint").triangular_solve(self, A, upper, transpose, unitriangular)


@tensor_method("cross")
def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along an axis of size 3."""
    return linear.cross(self, other, dim)


@tensor_method("qr")
def qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """An orthogonal and an upper triangular factor."""
    return decompositions.qr(self, "reduced" if some else "complete")


@tensor_method("select")
def select(self: Tensor, condition: Any, y: Any) -> Tensor:
    """The tensor where a condition holds, `y` elsewhere; of two integers, one entry of an axis."""
    if isinstance(condition, Tensor):
        return selection.select(condition, self, y)
    return import_module("msc.mint").select(self, condition, y)


@tensor_method("index_add")
def index_add(self: Tensor, *args: Any, alpha: Number = 1, **keywords: Any) -> Tensor:
    """`index_add(indices, y, axis)`, or `index_add(dim, index, source, alpha=1)`: slices are added at indices."""
    if {"dim", "index", "source"} & set(keywords) or (args and isinstance(args[0], int)):
        return _added(self, *args, alpha=alpha, **keywords)
    return scattering.index_add(self, *args, **keywords)


def _added(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
    return scattering.index_add(self, index, arithmetic.mul(source, alpha), dim)


@tensor_method("fill_diagonal")
def fill_diagonal(self: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """The tensor with a number on the diagonal; with `wrap` it begins again below a tall matrix."""
    place = np.zeros(self.shape, bool)
    np.fill_diagonal(place, val=True, wrap=wrap)
    return selection.masked_fill(self, Tensor(place), fill_value)


@tensor_method("index_put")
def index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with values at places, one index tensor for each of the first axes; added if `accumulate`."""
    if not accumulate:
        changed = methods.copied(self)
        changed[tuple(indices)] = values
        return changed
    shape = np.broadcast_shapes(*(i.shape for i in indices))
    places = joining.stack([broadcast_to(i, shape) for i in indices], -1)
    return scattering.tensor_scatter_add(self, places, broadcast_to(values, (*shape, *self.shape[len(indices) :])))


def _put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor, read in rows, with values at places; added if `accumulate`."""
    flat = index_put(reshape(self, (-1,)), (reshape(index, (-1,)),), reshape(source, (-1,)), accumulate)
    return reshape(flat, self.shape)


def _index_copied(self: Tensor, dim: int, index: Tensor, tensor: Tensor) -> Tensor:
    """The tensor with the slices of another one at the indices of an axis."""
    axis = axis_of(self, dim, "index_copy_")
    changed = swapaxes(methods.copied(self), 0, axis)
    return swapaxes(index_put(changed, (index,), swapaxes(tensor, 0, axis)), 0, axis)


def _scattered(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """The tensor with values at places along an axis: `reduce` "add" or "multiply" joins them."""
    given = value if src is None else src
    source = given if isinstance(given, Tensor) else creation.full(index.shape, given, dtype=self.dtype)
    joined = {None: "none", "add": "add", "multiply": "mul"}
    if reduce not in joined:
        raise ApiValueError("MSC0203", f"scatter_: reduce is {reduce!r}, not None, 'add' or 'multiply'")
    return scattering.tensor_scatter_elements(self, index, source, dim, joined[reduce])


# Random numbers.


def _numbers(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method that draws numbers in the shape and the element type of a tensor."""

    def method(self: Tensor, *args: Any, generator: Any = None, **keywords: Any) -> Tensor:
        unused(draw.__name__, generator=generator)
        return cast(draw(self, *args, **keywords), self.dtype)

    method.__doc__ = draw.__doc__
    formal = signature(draw)
    kind = Formal("generator", Formal.KEYWORD_ONLY, default=None, annotation=Any)
    vars(method)["__signature__"] = formal.replace(parameters=[*formal.parameters.values(), kind])
    return method


def _uniform(self: Tensor, from_: Number = 0.0, to: Number = 1.0) -> Tensor:
    """Numbers uniform in [from_, to)."""
    return random.uniform(self.shape, from_, to)


def _normal(self: Tensor, mean: Number = 0, std: Number = 1) -> Tensor:
    """Normal numbers with a mean and a deviation."""
    return random.normal(self.shape, mean, std)


def _log_normal(self: Tensor, mean: Number = 1.0, std: Number = 2.0) -> Tensor:
    """Numbers whose logarithms are normal."""
    return unary.exp(_normal(self, mean, std))


def _exponential(self: Tensor, lambd: Number = 1) -> Tensor:
    """Numbers of the exponential distribution with a rate."""
    return unary.log(1 - random.uniform(self.shape, 0.0, 1.0)) * (-1 / lambd)


def _cauchy(self: Tensor, median: float = 0.0, sigma: float = 1.0) -> Tensor:
    """Numbers of Cauchy's distribution."""
    return draws.cauchy_values(size=self.shape, median=median, sigma=sigma)


def _bernoulli(self: Tensor, p: Any = None) -> Tensor:
    """1 with a probability, which the elements say if p does not."""
    return random.bernoulli(self, self if p is None else p)


def _integers(self: Tensor, from_: int = 0, to: int | None = None) -> Tensor:
    """Integers uniform in [from_, to), or [0, from_); without both, in what the element type holds exactly."""
    kind = self.dtype.numpy
    most = 2 ** (np.finfo(kind).nmant + 1) if self.dtype.is_float else np.iinfo(kind).max
    low, high = (0, from_ or int(most)) if to is None else (from_, to)
    return random.randint(low, high, self.shape, dtype=self.dtype)


tensor_method("bernoulli")(_numbers(_bernoulli))
tensor_method("uniform")(_numbers(_uniform))
tensor_method("cauchy")(_numbers(_cauchy))
tensor_method("log_normal")(_numbers(_log_normal))

# In place: the tensor gets what the method without the line gives.


def _bernoulli_half(self: Tensor, p: Any = 0.5) -> Tensor:
    """1 with a probability."""
    return random.bernoulli(self, p)


for _name in "addmm erfinv exp fill_diagonal floor floor_divide index_add index_fill log masked_fill".split():
    tensor_method(f"{_name}_")(methods.changing(getattr(Tensor, _name)))
for _name in "index_put masked_scatter remainder scatter_add sigmoid sign tanh".split():
    tensor_method(f"{_name}_")(methods.changing(getattr(Tensor, _name)))
for _name, _function in {
    "bernoulli_": _numbers(_bernoulli_half),
    "exponential_": _numbers(_exponential),
    "index_copy_": _index_copied,
    "normal_": _numbers(_normal),
    "put_": _put,
    "random_": _numbers(_integers),
    "scatter_": _scattered,
    "uniform_": _numbers(_uniform),
}.items():
    tensor_method(_name)(methods.changing(_function))

# Shapes and memory.


@tensor_method("sum_to_size")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over what was broadcast from a shape. Raises MSC0201 for a shape that does not broadcast to this."""
    wanted = sizes_of(size[0] if len(size) == 1 else size)
    extra = self.ndim - len(wanted)
    if extra < 0 or any(w not in (1, s) for w, s in zip(wanted, self.shape[extra:], strict=True)):
        raise ApiValueError("MSC0201", f"sum_to_size: {self.shape} is no broadcast of {wanted}")
    axes = tuple(k for k in range(self.ndim) if k < extra or wanted[k - extra] != self.shape[k])
    return reshape(reductions.sum(self, axes, keepdim=True) if axes else self, wanted)


@tensor_method("resize")
def resize(self: Tensor, *new_shape: Any) -> Tensor:
    """The first elements in a shape, with zeros behind them if there are too few."""
    wanted = sizes_of(new_shape[0] if len(new_shape) == 1 else new_shape)
    count, flat = int(np.prod(wanted)), reshape(self, (-1,))
    if count > self.size:
        flat = joining.cat((flat, creation.zeros(count - self.size, self.dtype)))
    return reshape(flat[:count], wanted)


@tensor_method("unique_with_pad")
def unique_with_pad(self: Tensor, pad_num: Number) -> tuple[Tensor, Tensor]:
    """The elements once, in the order of their first places, with `pad_num` behind; and where each is there."""

    def once(x: Any, pad: Any) -> Any:
        _, first, places = np.unique(x, return_index=True, return_inverse=True)
        order = np.argsort(first)
        padded = np.full_like(x, pad)
        padded[: len(order)] = x[first[order]]
        return padded, np.argsort(order)[places]

    if self.ndim != 1:
        raise ApiValueError("MSC0201", f"unique_with_pad takes a vector, not a tensor of shape {self.shape}")
    return on_arrays("unique_with_pad", once, self, pad_num)


@tensor_method("new_full")
def new_full(self: Tensor, size: Any, fill_value: Number, *, dtype: Any = None) -> Tensor:
    """A number everywhere, in the element type of the tensor."""
    return creation.full(size, fill_value, dtype=dtype or self.dtype)


@tensor_method("new_empty")
def new_empty(self: Tensor, size: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros, in the element type of the tensor."""
    if device is not None:
        move_to(self, device)
    return creation.zeros(size, dtype or self.dtype)


@tensor_method("stride")
def stride(self: Tensor, dim: int | None = None) -> Any:
    """How many elements lie from one to the next along each axis, or one."""
    found = [n // self.itemsize for n in self.strides]
    return found if dim is None else found[dim]


@tensor_method("storage_offset")
def storage_offset(self: Tensor) -> int:
    """0: a tensor has its memory for itself."""
    return 0


@tensor_method("data_ptr")
def data_ptr(self: Tensor) -> int:
    """The address of the elements."""
    return concrete(self, "data_ptr()").ctypes.data


@tensor_method("get_bytes")
def get_bytes(self: Tensor) -> bytes:
    """The memory of the elements."""
    return concrete(self, "get_bytes()").tobytes()


@tensor_method("move_to", "to_")
def move_to(self: Tensor, to: Any = "CPU", blocking: bool = True) -> Tensor:
    """The tensor itself, on the CPU. Raises MSC0887 for another device."""
    if to not in (None, "CPU", "cpu"):
        raise ApiValueError("MSC0887", f"move_to: {to!r} is not there", help="tensors are on the CPU")
    return self


@tensor_method("requires_grad_")
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Whether a Parameter is trained. Raises MSC0807 for a tensor that is none."""
    if not isinstance(self, Parameter):
        message = f"requires_grad_ is of Parameters, and this is {a(type(self).__name__)}"
        raise ApiTypeError("MSC0807", message, help="msc.grad(function, positions) says what to differentiate by")
    self.requires_grad = requires_grad
    return self


@tensor_method("conj")
def conj(self: Tensor) -> Tensor:
    """The tensor: its numbers are real."""
    return self


def _is_not(self: Tensor) -> bool:
    """False: the elements lie in the memory of this process."""
    return False


for _name in ("is_pinned", "is_shared"):
    tensor_method(_name)(_is_not)
for _name in ("is_meta", "const_arg"):
    tensor_property(_name)(_is_not)


@tensor_property("device")
def device(self: Tensor) -> str:
    """The device of the elements."""
    return "CPU"


@tensor_property("data")
def data(self: Tensor) -> Tensor:
    """The elements as a constant, where a gradient is taken."""
    return methods.stop_gradient(self)


@tensor_property("H")
def transposed(self: Tensor) -> Tensor:
    """The matrix with rows and columns exchanged: its numbers are real."""
    return swapaxes(self, 0, 1)


@tensor_property("mH")
def adjoint(self: Tensor) -> Tensor:
    """The matrices with rows and columns exchanged: their numbers are real."""
    return swapaxes(self, -1, -2)
