"""`Parameter`: a named tensor of a Cell, whose value can be replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from msc.frontend.boundary import publish_methods
from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.changes import Changes
from msc.frontend.dtypes import DType, DTypeLike, as_dtype, of_numpy
from msc.frontend.errors import ApiTypeError, ApiValueError
from msc.frontend.tensor import Array, Number, Placeholder, Tensor, concrete, value_of
from msc.support.wording import a

if TYPE_CHECKING:
    from msc.frontend.parallel import Row

UNNAMED = "Parameter"
"""The name of a parameter that no Cell and no user has named yet."""


class Parameter(Tensor):
    """A named tensor, trainable if `requires_grad`. A Cell that it becomes an attribute of names it: `conv1.weight`.

    `Parameter(default_input, name=None, requires_grad=True)`; a tensor, an array or a number. The memory is its own.
    """

    @property
    def held(self) -> Any:
        """What there is of the elements: all, or, of a parameter that ranks share, this rank's part."""
        return self.__dict__["content"]

    @property
    def content(self) -> Any:
        """The elements; of a parameter that ranks share (`msc/frontend/sharing.py`), gathered from all of them."""
        if isinstance(self.held, Placeholder):
            self.content = cast(Any, self.held).gathered()
        return self.held

    @content.setter
    def content(self, value: Any) -> None:
        self.__dict__["content"] = value

    @property
    def dtype(self) -> DType:
        """The element type."""
        held = self.held
        return of_numpy(cast(Array, held).dtype) if isinstance(held, np.ndarray) else held.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of all of it."""
        return self.held.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.held.shape)

    varies = False
    """Whether the value changes between calls, as a learning rate does: compiled graphs take it as an argument."""

    strategy: Row | None = None
    """How ranks that share a graph cut it, if a plan of parameters says so."""

    def __init__(
        self,
        default_input: object,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
    ) -> None:
        super().__init__(default_input)
        if not isinstance(self.content, np.ndarray):
            raise ApiTypeError("MSC0807", "a Parameter needs data: it cannot be made of a shape or a captured value")
        self.name = UNNAMED if name is None else name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer
        self.version = 0
        """How often the elements were replaced, by other ones or where they lie."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("content", "version"):
            Changes.count += 1
        object.__setattr__(self, name, value)

    def replace(self, content: Array | Symbol | Placeholder) -> None:
        """Give the parameter a value of its own element type and shape; under capture, in the graph."""
        value = Tensor.of(content)
        if value.shape != self.shape or value.dtype is not self.dtype:
            raise ApiValueError(
                "MSC0807",
                f"parameter '{self.name}' is {self.dtype} of shape {self.shape}; "
                f"it cannot become {value.dtype} of shape {value.shape}",
            )
        builder = INSTALLED.builder
        if builder is not None:
            builder.write(self, value)
            return
        self.content = content
        Changes.count += 1
        self.version += 1

    def set_data(self, data: Tensor | Number, slice_shape: bool = False) -> Parameter:
        """Give the parameter another value; converted to its element type, of its shape unless `slice_shape`."""
        value = data if isinstance(data, Tensor) else Tensor(data, self.dtype)
        if slice_shape and isinstance(value.content, np.ndarray):
            self._become(value.content.astype(self.dtype.numpy))
        else:
            self.replace(value_of(value.astype(self.dtype)).content)
        return self

    def set_dtype(self, dtype: DTypeLike) -> Parameter:
        """Convert the parameter itself to another element type. Raises MSC0801."""
        self._become(concrete(self, "set_dtype()").astype(as_dtype(dtype).numpy))
        return self

    def _become(self, content: Array) -> None:
        """Have elements of another shape or type."""
        self.content = content  # pyright: ignore[reportIncompatibleVariableOverride]
        Changes.count += 1
        self.version += 1

    @property
    def data(self) -> Parameter:
        """The parameter itself, as in MindSpore."""
        return self

    def value(self) -> Tensor:
        """A tensor of the value that the parameter has now."""
        if INSTALLED.builder is not None:
            return INSTALLED.builder.read(self)
        content = self.content
        return Tensor.of(_unwritable(cast(Array, content)) if isinstance(content, np.ndarray) else content)

    def asnumpy(self) -> Array:
        """The elements as a NumPy array of its own."""
        return np.array(concrete(self, "asnumpy()"))

    numpy = asnumpy

    def clone(self, init: str | Number | Tensor = "same") -> Parameter:
        """A parameter of the same type and name, with the same elements, or those that `init` says."""
        copied = Parameter(self if init == "same" else filled(init, self), self.name, self.requires_grad)
        copied.__dict__ |= {k: v for k, v in self.__dict__.items() if k not in copied.__dict__}
        return copied

    def init_data(self, *_: Any) -> Parameter:
        """The parameter itself: its elements exist from the start."""
        return self

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )


def _unwritable(array: Array) -> Array:
    """A view that nobody can write through."""
    view = array.view()
    view.flags.writeable = False
    return view


def filled(init: str | Number | Tensor, like: Tensor) -> Tensor:
    """A tensor of the type of `like`, with the elements that a number, a tensor or an initialiser's name says."""
    from msc.frontend.initializers import initializer

    return initializer(init, like.shape, like.dtype)


class ParameterTuple(tuple[Parameter, ...]):
    """Parameters in an order, as `ParameterTuple(net.trainable_params())`. Raises MSC0807 for what is none."""

    def __new__(cls, parameters: Any) -> Self:
        items = tuple(parameters)
        for item in items:
            if not isinstance(item, Parameter):
                raise ApiTypeError("MSC0807", f"a ParameterTuple holds Parameters, not {a(type(item).__name__)}")
        return super().__new__(cls, items)

    def clone(self, prefix: str, init: str | Number | Tensor = "same") -> ParameterTuple:
        """Copies named `prefix.name`."""
        copies = [parameter.clone(init) for parameter in self]
        for copy in copies:
            copy.name = f"{prefix}.{copy.name}"
        return ParameterTuple(copies)


publish_methods(Parameter, "Parameter")
publish_methods(ParameterTuple, "ParameterTuple")
