"""`Tensor`: a reference to an immutable value, which is an array, or a value of the graph that is being captured.

Arithmetic, indexing and all other methods are attached by `msc.ops`, which knows the operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from msc.frontend import dtypes, mutable
from msc.frontend.arrays import array_of
from msc.frontend.boundary import public, publish_methods
from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.changes import SharedMemory
from msc.frontend.dtypes import DType, DTypeLike, as_dtype, of_numpy
from msc.frontend.errors import ApiAttributeError, ApiTypeError, ApiValueError, NeedsValue
from msc.frontend.settings import unused
from msc.support.arrays import Array
from msc.support.notebooks import html_table, html_text
from msc.support.torch_names import hint
from msc.support.wording import a

Number: TypeAlias = bool | int | float

_TABLE, _SIDE = 400, 40
"""Elements, and elements along an axis, of tensors that notebooks show as tables."""
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Placeholder:
    """What a tensor holds that was made of a shape and an element type alone; -1 is a size that calls decide.

    `ranges` are the limits of such sizes by axis, if they were given.
    """

    __slots__ = ("dtype", "ranges", "shape")

    def __init__(
        self, dtype: DType, shape: tuple[int, ...], ranges: Mapping[int, tuple[int, int | None]] | None = None
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.ranges = ranges or {}


class Tensor:
    """A tensor: element type `dtype`, sizes `shape`, and the elements, which nothing changes in place.

    `Tensor(data, dtype=None)` copies NumPy arrays, numbers and nested lists of numbers: Python's ints become Int64, its
    floats Float32, NumPy's keep their type. `Tensor(shape=(None, 4), dtype=msc.float32)` has no elements; it describes
    an argument of a compiled function, with None for a size that calls decide. `Tensor(shape=..., dtype=...,
    init=Normal())` takes the elements from an initialiser. `Tensor.from_numpy(array)` shares the array's memory.
    Raises MSC0801 for element types and MSC0803 for data that are none.
    """

    content: Array | Symbol | Placeholder

    __array_priority__: ClassVar[float] = 1000.0
    """NumPy arrays leave operators with tensors to the tensor."""

    def __init__(
        self,
        input_data: object = None,
        dtype: DTypeLike | None = None,
        shape: int | Sequence[int | mutable.Symbol | None] | None = None,
        init: Callable[[tuple[int, ...], DType], Array] | None = None,
        const_arg: bool = False,
    ) -> None:
        if const_arg:
            unused("Tensor", const_arg=const_arg)
        wanted = None if dtype is None else as_dtype(dtype)
        if shape is not None and input_data is None:
            self.content = _described(shape, wanted, init)
        elif isinstance(input_data, Tensor) and not isinstance(input_data.content, np.ndarray):
            self.content = input_data.content if wanted is None else input_data.astype(wanted).content
        else:
            self.content = array_of(concrete(input_data) if isinstance(input_data, Tensor) else input_data, wanted)
            if shape is not None and tuple(np.atleast_1d(np.asarray(shape))) != self.content.shape:
                raise ApiValueError("MSC0803", f"the data have shape {self.content.shape}, not {shape}")

    @classmethod
    def of(cls, value: Array | Symbol | Placeholder) -> Tensor:
        """The tensor that refers to `value`, which is not copied."""
        tensor = Tensor.__new__(Tensor)
        tensor.content = value
        return tensor

    @staticmethod
    def from_numpy(array: object) -> Tensor:
        """A tensor that shares the memory of a NumPy array: a later change of the array is one of the tensor."""
        if not isinstance(array, np.ndarray):
            raise ApiTypeError("MSC0803", f"from_numpy takes a NumPy array, not {a(type(array).__name__)}")
        shared = cast(Array, array).view()
        of_numpy(shared.dtype)
        SharedMemory.add(shared)
        return Tensor.of(shared)

    # What it is.

    @property
    def dtype(self) -> DType:
        """The element type."""
        value = self.content
        return of_numpy(value.dtype) if isinstance(value, np.ndarray) else value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; -1 for one that is not known while a graph is captured."""
        return self.content.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.content.shape)

    @property
    def size(self) -> int:
        """The number of elements; -1 if it is not known."""
        shape = self.content.shape
        return -1 if -1 in shape else int(np.prod(shape, dtype=np.int64))

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis, in row-major order."""
        return tuple(int(np.prod(self.shape[i + 1 :], dtype=np.int64)) * self.itemsize for i in range(self.ndim))

    def replace(self, content: Array | Symbol | Placeholder) -> None:
        """Refer to another value: what item assignment does. All names of this tensor see it."""
        if INSTALLED.builder is not None:
            INSTALLED.builder.changing(self)
        self.content = content

    @property
    def is_symbolic(self) -> bool:
        """Whether the tensor is a value of a graph that is being captured."""
        return isinstance(self.content, Symbol)

    # Its elements, where they are known.

    def asnumpy(self) -> Array:
        """The elements as a NumPy array, which shares the tensor's memory unless other tensors share that too."""
        array = concrete(self, "asnumpy()")
        if not array.flags.writeable:
            self.content = array = array.copy()
        SharedMemory.add(array)
        return array.view()

    numpy = asnumpy

    def item(self, *index: int) -> Number:
        """The only element as a Python number, or the one at an index."""
        array = concrete(self, "item()")
        if not index and array.size != 1:
            raise ApiValueError("MSC0804", f"item() takes a tensor of one element; this one has shape {self.shape}")
        try:
            return array.item(*index)
        except (IndexError, ValueError) as error:
            raise ApiValueError("MSC0804", f"item{index}: {error}") from None

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for rank 0."""
        return concrete(self, "tolist()").tolist()

    def __array__(self, dtype: np.dtype[Any] | None = None, copy: bool | None = None) -> Array:
        array = concrete(self, "a NumPy array")
        if dtype is not None and dtype != array.dtype:
            return array.astype(dtype)
        if copy:
            return array.copy()
        view = array.view()
        view.flags.writeable = False
        return view

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        """NumPy's functions take a tensor for the array of its elements, and give arrays."""
        return function(*_as_arrays(args), **_as_arrays(kwargs))

    @classmethod
    def __torch_function__(cls, function: Any, types: object, args: object = (), keywords: object = None) -> NoReturn:
        """What PyTorch calls when a tensor of msc comes to one of its functions or layers. Raises MSC0015."""
        name = getattr(function, "__name__", "a function")
        advice = "msc.ops and msc.nn have functions and layers of such names; torch.from_numpy(x.asnumpy()) leaves msc"
        raise ApiTypeError("MSC0015", f"PyTorch's {name} is given a Tensor of msc, which it does not take", help=advice)

    def __dlpack__(self, **options: Any) -> Any:
        return self.asnumpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __bool__(self) -> bool:
        array = concrete(self, "a truth value")
        if array.size != 1:
            raise ApiValueError(
                "MSC0804",
                f"a tensor of shape {self.shape} is neither true nor false",
                help="use .all() or .any(); for an `if` on each element, ops.where(condition, a, b)",
            )
        return bool(array.item())

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __index__(self) -> int:
        value = self._number("an index")
        if isinstance(value, float):
            raise ApiTypeError("MSC0804", f"a tensor of element type {self.dtype} is no index")
        return int(value)

    def _number(self, what: str) -> Number:
        array = concrete(self, what)
        if array.size != 1:
            raise ApiValueError("MSC0804", f"{what} takes a tensor of one element; this one has shape {self.shape}")
        return array.item()

    def __contains__(self, item: Tensor | Number) -> bool:
        equal: Any = self == item
        return bool(equal.any())

    def __len__(self) -> int:
        if not self.shape:
            raise ApiTypeError("MSC0804", "a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ApiTypeError("MSC0804", "a tensor of rank 0 cannot be iterated over")
        if self.shape[0] == -1:
            raise NeedsValue("iterating over an axis of unknown size")
        return (self[i] for i in range(self.shape[0]))

    def __str__(self) -> str:
        return repr(self) if isinstance(self.content, Placeholder) else str(concrete(self, "text"))

    def __repr__(self) -> str:
        known = isinstance(self.content, np.ndarray) or INSTALLED.builder is not None
        return representation(self.shape, self.dtype, concrete(self, "text") if known else None)

    def _repr_html_(self) -> str:
        """What notebooks show: a table of a vector or a small matrix, text of others."""
        caption = f"Tensor of shape {self.shape}, {self.dtype}"
        array = self.content
        if not isinstance(array, np.ndarray):
            return html_text(caption, repr(self))
        if array.ndim not in (1, 2) or not 0 < array.size <= _TABLE or max(array.shape) > _SIDE:
            return html_text(caption, str(array))
        shown = np.atleast_2d(array).tolist()
        rows = [[f"{value:g}" if isinstance(value, float) else value for value in row] for row in shown]
        return html_table(caption, (), rows)

    def __format__(self, specification: str) -> str:
        array = concrete(self, "formatting")
        return format(array.item(), specification) if array.ndim == 0 else format(str(array), specification)

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        advice = import_module("msc.mindspore.refusals").member_advice(type(self), name)
        known = [n for n in dir(type(self)) if not n.startswith("_")]
        raise ApiAttributeError("MSC0805", f"a Tensor has no attribute '{name}'", help=advice or hint(name, known))

    if TYPE_CHECKING:  # attached by msc.ops

        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __add__(self, other: Tensor | Number) -> Tensor: ...
        def __radd__(self, other: Number) -> Tensor: ...
        def __sub__(self, other: Tensor | Number) -> Tensor: ...
        def __rsub__(self, other: Number) -> Tensor: ...
        def __mul__(self, other: Tensor | Number) -> Tensor: ...
        def __rmul__(self, other: Number) -> Tensor: ...
        def __truediv__(self, other: Tensor | Number) -> Tensor: ...
        def __rtruediv__(self, other: Number) -> Tensor: ...
        def __floordiv__(self, other: Tensor | Number) -> Tensor: ...
        def __mod__(self, other: Tensor | Number) -> Tensor: ...
        def __pow__(self, other: Tensor | Number) -> Tensor: ...
        def __matmul__(self, other: Tensor) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __lt__(self, other: Tensor | Number) -> Tensor: ...
        def __le__(self, other: Tensor | Number) -> Tensor: ...
        def __gt__(self, other: Tensor | Number) -> Tensor: ...
        def __ge__(self, other: Tensor | Number) -> Tensor: ...
        def __and__(self, other: Tensor | Number) -> Tensor: ...
        def __or__(self, other: Tensor | Number) -> Tensor: ...


publish_methods(Tensor, "Tensor", without=("of",))  # which every operation calls


def tensor_method(*names: str) -> Callable[[FunctionT], FunctionT]:
    """Make a function, whose first argument is the tensor, a method of `Tensor` under each of `names`."""

    def attach(function: FunctionT) -> FunctionT:
        for name in names:
            setattr(Tensor, name, public(function, f"Tensor.{name}"))
        return function

    return attach


def tensor_property(name: str) -> Callable[[FunctionT], FunctionT]:
    """Make a function of a tensor an attribute of `Tensor`."""

    def attach(function: FunctionT) -> FunctionT:
        setattr(Tensor, name, property(function))
        return function

    return attach


def value_of(tensor: Tensor) -> Tensor:
    """Another tensor of the value that a tensor has now: what is assigned to one is not to the other.

    Their memory is one where no NumPy array shares it; `asnumpy` copies what nobody may write.
    """
    content = tensor.content
    return Tensor.of(apart(content, content) if isinstance(content, np.ndarray) else content)


def apart(array: Array, source: Array) -> Array:
    """An array of the memory of a tensor's, `source`, for another tensor: a copy if NumPy arrays may write into it."""
    if SharedMemory.has(source):
        return array.copy()
    source.flags.writeable = array.flags.writeable = False
    return array


def concrete(tensor: Tensor, what: str = "this operation") -> Array:
    """The array of a tensor. Raises NeedsValue for a symbolic one, MSC0806 for one that has no elements."""
    value = tensor.content
    if isinstance(value, np.ndarray):
        if INSTALLED.builder is not None:
            INSTALLED.builder.observing(tensor)
        return value
    if isinstance(value, Symbol):
        if INSTALLED.builder is None:
            raise NeedsValue(what)
        return INSTALLED.builder.value_of(tensor, what)
    raise ApiValueError(
        "MSC0806",
        f"{what} needs the elements of a tensor that was made of a shape alone: {tensor!r}",
        help="such a tensor describes an argument for compiling; give data to compute",
    )


def _as_arrays(given: Any) -> Any:
    """Arguments of a function of NumPy, with arrays in place of tensors."""
    if isinstance(given, Tensor):
        return given.__array__()
    if type(given) in (list, tuple):
        return type(given)(map(_as_arrays, cast(Sequence[Any], given)))
    if type(given) is dict:
        return {key: _as_arrays(item) for key, item in cast(dict[str, Any], given).items()}
    return given


def _described(
    shape: int | Sequence[int | mutable.Symbol | None],
    dtype: DType | None,
    init: Callable[[tuple[int, ...], DType], Array] | None,
) -> Array | Placeholder:
    """The value of a tensor of a shape: what the initialiser gives, or nothing."""
    given = (shape,) if isinstance(shape, int) else tuple(shape)
    sizes = tuple(-1 if n is None or isinstance(n, mutable.Symbol) else n for n in given)
    if any(n < -1 for n in sizes):
        raise ApiValueError("MSC0803", f"the shape {sizes} has negative sizes")
    if init is None:
        ranges = {axis: (n.least, n.most) for axis, n in enumerate(given) if isinstance(n, mutable.Symbol)}
        return Placeholder(dtype or dtypes.float32, sizes, ranges)
    if -1 in sizes:
        raise ApiValueError("MSC0803", f"an initialiser needs all sizes; the shape is {sizes}")
    return init(sizes, dtype or dtypes.float32)


# How a tensor is written, as MindSpore writes it: `Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e+00])`.
def representation(shape: Sequence[int], dtype: DType, array: NDArray[Any] | None) -> str:
    """The text of a tensor; without its elements if `array` is None."""
    head = f"Tensor(shape=[{', '.join(map(str, shape))}], dtype={dtype}"
    if array is None:
        return f"{head})"
    separator = "\n" if array.ndim > 1 else " "
    return f"{head}, value={separator}{_elements(array, dtype)})"


def _elements(array: NDArray[Any], dtype: DType) -> str:
    if array.ndim == 0:
        return f"{array.item():.6g}" if dtype.is_float else str(array.item())
    digits = 4 if dtype.itemsize == 2 else 8
    numbers = array.astype(np.float64) if dtype.is_float else array
    return np.array2string(numbers, separator=", ", formatter={"float_kind": lambda v: f"{v: .{digits}e}"})
