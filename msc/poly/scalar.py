"""The scalar bodies of compute definitions: a small expression tree, evaluated once per point of an iteration domain.

    Scalar = Constant | Read | Index | Apply | Cast

Element types are named as MLIR names them: "f16", "bf16", "f32", "f64", "i1", "i8" ... "i64", "ui8" ... "ui64".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.ir.affine import AffineExpr, AffineMap


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarOperator:
    """All that is said of a scalar operator, once; `msc/poly/operators.py` has the records.

    A level that needs more than a name (the text of an approximation in C, an instruction of the Ascend core) registers
    it by the operator's name. Where it has nothing of its own, it uses the formula.
    """

    name: str
    arity: int = 1
    boolean: bool = False
    """Whether the result is "i1"; it has the element type of the last argument if not."""
    tensors: Mapping[str, str] = field(default_factory=dict[str, str])
    """The operations on tensors that compute it at each place (`exp` for `ms.exp`), with their names in ONNX, or ""."""
    doc: str = ""
    """What the operation on tensors is, of an operator of one argument whose operation has no properties."""
    dtypes: str = "a float"
    """The family of element types that this operation takes."""
    numpy: str = ""
    """NumPy's function; `msc/interp` has the meaning if it is ""."""
    python: Callable[[float], float] | None = None
    """A function of floats of double precision, where NumPy has none."""
    mlir: str = ""
    """The upstream operation on floats; the formula is lowered if there is none."""
    integers: tuple[str, ...] = ()
    """The upstream operation on integers, or that on signed ones and that on unsigned ones."""
    c: str = ""
    """The function of C's library on doubles."""
    cost: str = ""
    """The figure of a machine's `operators` with its vector instructions; one instruction without a figure."""
    times: int = 1
    """How many times that figure."""
    slope: Slope | None = None
    """Its derivative by each argument, on floats; None where it is constant between jumps."""
    integer_slope: Slope | None = None
    """That on integers, as the numbers that they are."""
    unbounded: bool = False
    """Whether a slope may be infinite, or no number, where the value is finite or not chosen."""
    formula: Callable[..., Scalar] | None = None
    """The operator over others, as accurate as they are."""
    single: Callable[..., Scalar] | None = None
    """The operator over arithmetic, `exp` and `log`, to the accuracy of f32, where no formula is."""


OPERATORS: dict[str, ScalarOperator] = {}
"""The scalar operators by name. Arithmetic keeps its arguments' element type; comparisons give "i1".

`max` and `min` propagate NaN (IEEE 754-2019 maximum and minimum); `div` on integers truncates towards zero, as does
`rem`; `mod` follows the sign of the divisor (NumPy); `round` is half to even; `and`, `or`, `xor` and `not` are bitwise.
"""


def register(*operators: ScalarOperator) -> None:
    """Add scalar operators. Raises ValueError for a name that has one."""
    for operator in operators:
        if OPERATORS.setdefault(operator.name, operator) is not operator:
            raise ValueError(f"two scalar operators {operator.name!r}")


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of element type `dtype`; infinities and NaN are Python floats."""

    value: float | int | bool
    dtype: str


@dataclass(frozen=True, slots=True)
class Read:
    """Operand number `operand` at the index that `index` gives for the point.

    `indirect` holds, for tensor dimensions whose index is data (gather), the scalar that computes it;
    the map's result for such a dimension is ignored.
    """

    operand: int
    index: AffineMap
    dtype: str
    indirect: tuple[tuple[int, Scalar], ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """The value of an affine expression of the point, as "i64"."""

    expr: AffineExpr
    dtype: str = "i64"


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar operator on arguments of one element type (`select`: an "i1" condition first)."""

    op: str
    args: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if self.op not in OPERATORS or OPERATORS[self.op].arity != len(self.args):
            raise ValueError(f"scalar operator {self.op!r} with {len(self.args)} arguments")

    @property
    def dtype(self) -> str:
        return "i1" if OPERATORS[self.op].boolean else self.args[-1].dtype


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion of element type, as NumPy's `astype`: floats round to nearest even, float to integer truncates.

    With `bits` the bits stay and are read as the other type, of the same width, as NumPy's `view`.
    """

    arg: Scalar
    dtype: str
    bits: bool = False


Scalar: TypeAlias = Constant | Read | Index | Apply | Cast
Slope: TypeAlias = Callable[[Apply], "tuple[Scalar | None, ...]"]
"""From an applied operator to its derivative by each argument; None if it has no derivative."""


def apply(op: str, *args: Scalar) -> Apply:
    """`Apply` without the tuple."""
    return Apply(op, args)


def indices(scalar: Scalar) -> Iterator[Index]:
    """Every value of an index in a scalar, left to right, those inside indirect indices included."""
    match scalar:
        case Index():
            yield scalar
        case Read():
            for _, index in scalar.indirect:
                yield from indices(index)
        case Apply():
            for arg in scalar.args:
                yield from indices(arg)
        case Cast():
            yield from indices(scalar.arg)
        case Constant():
            return


def reads(scalar: Scalar) -> Iterator[Read]:
    """Every read of a scalar, left to right, those inside indirect indices included."""
    match scalar:
        case Read():
            for _, index in scalar.indirect:
                yield from reads(index)
            yield scalar
        case Apply():
            for arg in scalar.args:
                yield from reads(arg)
        case Cast():
            yield from reads(scalar.arg)
        case Constant() | Index():
            return


def values_read(scalar: Scalar) -> set[int]:
    """The operands that a scalar computes with, without those that it only reads to find where to read."""
    match scalar:
        case Read():
            return {scalar.operand}
        case Apply():
            return set[int]().union(*map(values_read, scalar.args))
        case Cast():
            return values_read(scalar.arg)
        case Constant() | Index():
            return set()


def data_dims(scalar: Scalar) -> set[int]:
    """The dimensions along which a scalar reads at other data: those of all that computes its indirect indices."""
    data = [index for read in reads(scalar) for _, index in read.indirect]
    places = (read.index.used_dims() for index in data for read in reads(index))
    numbers = (number.expr.used_dims() for index in data for number in indices(index))
    return set[int]().union(*places, *numbers)


def rewritten(scalar: Scalar, change: Callable[[Read | Index], Scalar]) -> Scalar:
    """The scalar with its reads and indices changed; `change` sees a read with its indirect indices rewritten."""
    match scalar:
        case Read(indirect=()):
            return change(scalar)
        case Read():
            return change(replace(scalar, indirect=tuple((d, rewritten(i, change)) for d, i in scalar.indirect)))
        case Index():
            return change(scalar)
        case Apply():
            return Apply(scalar.op, tuple(rewritten(arg, change) for arg in scalar.args))
        case Cast():
            return replace(scalar, arg=rewritten(scalar.arg, change))
        case Constant():
            return scalar


def with_moved_reads(scalar: Scalar, maps: Mapping[int, AffineMap | None]) -> Scalar:
    """The scalar with reads of operand k at `maps[k]` of their index, where `maps` has one.

    Raises ValueError for a read at an index that is data where the map does more than permute that axis.
    """
    return rewritten(scalar, lambda leaf: _moved(leaf, maps.get(leaf.operand)) if isinstance(leaf, Read) else leaf)


def _moved(read: Read, map_: AffineMap | None) -> Read:
    if map_ is None:
        return read
    places = {d: map_.results.index(AffineExpr.dimension(d)) for d, _ in read.indirect}
    return replace(read, index=map_.compose(read.index), indirect=tuple((places[d], i) for d, i in read.indirect))
