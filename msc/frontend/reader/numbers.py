"""Python numbers that are not known when a program is read: counters of loops, comparisons, mutable arguments.

They compute as Python does: `int` as i64, `float` as f64; a call whose integers need more bits runs in PyNative mode.
Beside a tensor they are numbers: the tensor's element type wins as it does over a literal.
"""

# Values of user programs are of any type, and so is what they hold.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.capture import INSTALLED, Symbol
from msc.frontend.dispatch import apply
from msc.frontend.dtypes import BOOLEAN, DType
from msc.frontend.errors import OVERFLOW
from msc.frontend.tensor import Tensor, concrete
from msc.graph.index_checks import Expected

_SAFE = 2**62
"""What floats show of integers is not exact: those that are nearly too large are taken for such."""

DTYPES: dict[type, DType] = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}


def _rank(kind: Any) -> int:
    """Of two kinds of numbers, the one of higher rank is what Python computes with."""
    return (bool, int, float).index(kind)


class RuntimeNumber:
    """A bool, int or float (`kind`) that the graph computes; `tensor` has rank 0 and the element type of DTYPES."""

    __array_priority__ = 2000.0

    def __init__(self, kind: type, tensor: Tensor) -> None:
        self.kind = kind
        self.tensor = tensor

    def known(self, what: str) -> bool | int | float:
        """The number itself, where the graph can be run up to here. Raises Refusal where it cannot."""
        return self.kind(concrete(self.tensor, what).item())

    def __bool__(self) -> bool:
        return bool(self.known("a truth value"))

    def __int__(self) -> int:
        return int(self.known("int()"))

    def __float__(self) -> float:
        return float(self.known("float()"))

    def __index__(self) -> int:
        if self.kind is float:
            raise TypeError("'float' object cannot be interpreted as an integer")
        return int(self.known("an index"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.known("a NumPy array"), dtype)

    def __hash__(self) -> int:
        return hash(self.known("a hash"))

    def __str__(self) -> str:
        return str(self.known("text"))

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return format(self.known("text"), specification)

    def __round__(self, digits: int | None = None) -> bool | int | float:
        return round(self.known("round()"), digits)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.known(f"'.{name}'"), name)

    def __neg__(self) -> RuntimeNumber:
        return self._times(-1)

    def __pos__(self) -> RuntimeNumber:
        return self._times(1)

    def __invert__(self) -> RuntimeNumber:
        return _arithmetic("sub")(self._times(-1), 1)

    def __abs__(self) -> RuntimeNumber:
        kind = int if self.kind is bool else self.kind
        return RuntimeNumber(kind, apply("abs", as_kind(self, kind)))

    def _times(self, factor: int) -> RuntimeNumber:
        return _MUL(self, factor)

    def __eq__(self, other: object) -> Any:
        return compare("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return compare("not_equal", self, other)

    def __lt__(self, other: object) -> Any:
        return compare("less", self, other)

    def __le__(self, other: object) -> Any:
        return compare("less_equal", self, other)

    def __gt__(self, other: object) -> Any:
        return compare("greater", self, other)

    def __ge__(self, other: object) -> Any:
        return compare("greater_equal", self, other)


Number = bool | int | float | RuntimeNumber

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def kind_of(value: object) -> type | None:
    """bool, int or float for numbers; None for all else."""
    if isinstance(value, RuntimeNumber):
        return value.kind
    return type(value) if type(value) in DTYPES else None


def as_kind(value: Any, kind: type) -> Tensor:
    """A number as a tensor of rank 0 of the element type of `kind`."""
    if not isinstance(value, RuntimeNumber):
        return Tensor.of(np.array(value, DTYPES[kind].numpy))
    return value.tensor if value.kind is kind else apply("cast", value.tensor, dtype=DTYPES[kind])


def beside(value: RuntimeNumber, tensor: Tensor) -> Tensor:
    """A number as an operand beside a tensor: of the tensor's element type, unless that is of a lower category."""
    dtype = tensor.dtype
    if DTYPES[value.kind].category > dtype.category:
        dtype = dtypes.float32 if value.kind is float else dtypes.int64
    return apply("cast", value.tensor, dtype=dtype)


def compare(name: str, a: Any, b: Any) -> Any:
    """Compare two numbers as Python does."""
    kinds = kind_of(a), kind_of(b)
    if None in kinds:
        return NotImplemented
    if not (_has_64_bits(a) and _has_64_bits(b)):
        return _COMPARISONS[name](_plain(a), _plain(b))
    kind: Any = max(*kinds, key=_rank)
    return RuntimeNumber(bool, apply(name, as_kind(a, kind), as_kind(b, kind)))


def _has_64_bits(value: Any) -> bool:
    """Whether the graph can hold a number; all floats have 64 bits."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    def compute(a: Any, b: Any) -> Any:
        kinds = kind_of(a), kind_of(b)
        if None in kinds:
            return NotImplemented
        if not (_has_64_bits(a) and _has_64_bits(b)):
            return getattr(operator, name)(_plain(a), _plain(b))
        kind: Any = max(int, *kinds, key=_rank)
        result = apply(name, as_kind(a, kind), as_kind(b, kind))
        if kind is int:
            _fits(result, apply(name, *(apply("cast", as_kind(x, int), dtype=dtypes.float64) for x in (a, b))))
        return RuntimeNumber(kind, result)

    return compute


def _fits(result: Tensor, rounded: Tensor) -> None:
    """Expect that an integer, which is also computed as a float, has 64 bits: Python's integers have any number."""
    graph: Any = getattr(INSTALLED.builder, "graph", None)
    value, shown = result.content, rounded.content
    if graph is not None and isinstance(value, Symbol) and isinstance(shown, Symbol):
        whole = "what 64 bits hold, which graph mode computes with"
        graph.expect(value.ssa, Expected(-_SAFE, _SAFE, "an integer", whole, code=OVERFLOW, shown_by=shown.ssa))


def _quotient(a: Any, b: Any) -> Any:
    """True division, by a divisor that is known not to be zero: Python raises for a zero."""
    if kind_of(a) is None or kind_of(b) is None:
        return NotImplemented
    if isinstance(b, RuntimeNumber) or b == 0:
        return operator.truediv(_plain(a), _plain(b))
    return RuntimeNumber(float, apply("div", as_kind(a, float), as_kind(b, float)))


def _known(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """What only Python computes: with the numbers themselves."""

    def compute(a: Any, b: Any) -> Any:
        return NotImplemented if isinstance(a, Tensor) or isinstance(b, Tensor) else function(_plain(a), _plain(b))

    return compute


def _power(a: Any, b: Any) -> Any:
    if isinstance(b, int) and 0 < b <= 4 and isinstance(a, RuntimeNumber):
        return a if b == 1 else _MUL(a, _power(a, b - 1))
    return _known(operator.pow)(a, b)


def _floor(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Floor division and remainder of ints by a positive int, which the graph's operations compute as Python does."""

    def compute(a: Any, b: Any) -> Any:
        if type(b) is int and b > 0 and kind_of(a) is int:
            quotient = apply("floor_div", as_kind(a, int), as_kind(b, int))
            if function is operator.floordiv:
                return RuntimeNumber(int, quotient)
            return RuntimeNumber(int, apply("sub", as_kind(a, int), apply("mul", quotient, as_kind(b, int))))
        return _known(function)(a, b)

    return compute


def _plain(value: Any) -> Any:
    return value.known("a Python operator") if isinstance(value, RuntimeNumber) else value


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


_MUL = _arithmetic("mul")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _MUL,
    "truediv": _quotient,
    "floordiv": _floor(operator.floordiv),
    "mod": _floor(operator.mod),
    "pow": _power,
    "and": _known(operator.and_),
    "or": _known(operator.or_),
    "xor": _known(operator.xor),
    "lshift": _known(operator.lshift),
    "rshift": _known(operator.rshift),
}
for _name, _function in _OPERATORS.items():
    setattr(RuntimeNumber, f"__{_name}__", _function)
    setattr(RuntimeNumber, f"__r{_name}__", _reflected(_function))


def truth(value: Any) -> Tensor:
    """A symbolic tensor of one element, or a runtime number, as a boolean tensor of rank 0."""
    tensor = value.tensor if isinstance(value, RuntimeNumber) else value
    if tensor.shape != ():
        tensor = apply("reshape", tensor, shape=())
    if tensor.dtype.category == BOOLEAN:
        return tensor
    zero = Tensor.of(np.zeros((), tensor.dtype.numpy))
    return apply("not_equal", tensor, zero)


def negated(condition: Tensor) -> Tensor:
    """Whether a condition does not hold."""
    return apply("logical_not", condition)
