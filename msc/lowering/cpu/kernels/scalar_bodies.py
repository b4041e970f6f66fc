"""Scalar bodies of compute definitions as upstream `arith` and `math` operations.

Values of f16 and bf16 are computed in f32: a read extends, a write rounds. Unsigned integers are signless here; the
operations carry the signedness. Integer division never traps: a division by zero gives zero, as in the interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects import math as maths
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from msc.dialects.element_types import element_type, is_float, is_signed
from msc.dialects.loop import LanesOp
from msc.poly.scalar import OPERATORS, Apply, Cast, Constant, Index, Read, Scalar

_CLASSES: Mapping[str, Callable[..., Operation]] = {
    found.name: found for found in (*arith.Arith.operations, *maths.Math.operations)
}


def _upstream(name: str, args: Sequence[SSAValue]) -> Operation:
    """An upstream operation on values of one type; `loop.lanes` where xDSL lacks it."""
    made = _CLASSES.get(name)
    return made(*args) if made is not None else LanesOp(name, args, args[0].type)


_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compute_type(dtype: str) -> Attribute:
    """The type that values of an element type have while they are computed on."""
    if dtype in ("f16", "bf16"):
        return element_type("f32")
    return storage_type(dtype)


def storage_type(dtype: str) -> Attribute:
    """The type that elements have in memory: unsigned integers are signless."""
    return element_type(dtype.removeprefix("u")) if dtype.startswith("u") else element_type(dtype)


def _absent(leaf: Read | Index) -> SSAValue:
    raise AssertionError(f"{leaf} has no value here")


class BodyEmitter:
    """Emits scalar trees; `insert` places an operation, `load` and `index` give the values of what trees read."""

    def __init__(
        self,
        insert: Callable[[Operation], Operation],
        load: Callable[[Read], SSAValue] = _absent,
        index: Callable[[Index], SSAValue] = _absent,
    ):
        self._insert = insert
        self._load = load
        self._index = index

    def emit(self, scalar: Scalar) -> SSAValue:
        """The value of a scalar, of its compute type."""
        match scalar:
            case Constant():
                return self.constant(scalar.value, scalar.dtype)
            case Read():
                return self._load(scalar)
            case Index():
                return self._index(scalar)
            case Cast() if scalar.bits:
                return self.cast_bits(self.emit(scalar.arg), scalar.arg.dtype, scalar.dtype)
            case Cast():
                return self.cast(self.emit(scalar.arg), scalar.arg.dtype, scalar.dtype)
            case Apply():
                return self.apply(scalar.op, [self.emit(a) for a in scalar.args], scalar.args[-1].dtype)

    def constant(self, value: float | bool, dtype: str) -> SSAValue:
        type_ = compute_type(dtype)
        if is_float(dtype):
            return self._put(arith.ConstantOp(FloatAttr(float(value), _as_float(type_))))
        integer = _as_integer(type_)
        return self._put(arith.ConstantOp(IntegerAttr(_wrapped(int(value), integer.width.data), integer)))

    def apply(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        """One scalar operator on arguments of element type `dtype`."""
        if op == "select":
            return self._put(arith.SelectOp(args[0], args[1], args[2]))
        if op in _FLOAT_PREDICATES:
            return self._compare(op, args[0], args[1], dtype)
        return self._float(op, args, dtype) if is_float(dtype) else self._integer(op, args, dtype)

    def _compare(self, op: str, lhs: SSAValue, rhs: SSAValue, dtype: str) -> SSAValue:
        if is_float(dtype):
            return self._put(arith.CmpfOp(lhs, rhs, _FLOAT_PREDICATES[op]))
        sign = "" if op in ("eq", "ne") else "s" if is_signed(dtype) else "u"
        return self._put(arith.CmpiOp(lhs, rhs, sign + op))

    def _float(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        if upstream := OPERATORS[op].mlir:
            return self._put(_upstream(upstream, args))
        own = {"mod": self._float_modulo, "sign": self._float_sign, "isnan": self._is_nan, "isinf": self._is_inf}.get(
            op
        )
        return own(args, dtype) if own is not None else self._by_formula(op, args, dtype)

    def _by_formula(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        formula = OPERATORS[op].formula
        if formula is None:
            raise ValueError(f"scalar operator {op!r} has neither an upstream operation nor a formula")
        reads = [Read(k, AffineMap(0, 0, ()), dtype) for k in range(len(args))]
        return _FormulaEmitter(self._insert, lambda read: args[read.operand]).emit(formula(*reads))

    def _float_modulo(self, args: list[SSAValue], dtype: str) -> SSAValue:
        """The remainder moved to the divisor's sign (NumPy)."""
        remainder = self.apply("rem", args, dtype)
        return self._to_sign_of_divisor(remainder, args[1], dtype)

    def _to_sign_of_divisor(self, remainder: SSAValue, divisor: SSAValue, dtype: str) -> SSAValue:
        zero = self.constant(0, dtype)
        nonzero = self._compare("ne", remainder, zero, dtype)
        negative = self._compare("lt", remainder, zero, dtype)
        other = self._compare("lt", divisor, zero, dtype)
        differs = self._put(arith.XOrIOp(negative, other))
        moves = self._put(arith.AndIOp(nonzero, differs))
        moved = self.apply("add", [remainder, divisor], dtype)
        kept = (
            self._put(LanesOp("math.copysign", [remainder, divisor], remainder.type)) if is_float(dtype) else remainder
        )
        settled = self._put(arith.SelectOp(nonzero, remainder, kept))
        return self._put(arith.SelectOp(moves, moved, settled))

    def _float_sign(self, args: list[SSAValue], dtype: str) -> SSAValue:
        """-1, 0 or 1; NaN stays. Adding zero makes -0.0 the 0.0 that NumPy gives."""
        zero = self.constant(0.0, dtype)
        above = self._compare("gt", args[0], zero, dtype)
        below = self._compare("lt", args[0], zero, dtype)
        neither = self._put(arith.AddfOp(args[0], zero))
        inner = self._put(arith.SelectOp(below, self.constant(-1.0, dtype), neither))
        return self._put(arith.SelectOp(above, self.constant(1.0, dtype), inner))

    def _is_nan(self, args: list[SSAValue], dtype: str) -> SSAValue:
        return self._put(arith.CmpfOp(args[0], args[0], "uno"))

    def _is_inf(self, args: list[SSAValue], dtype: str) -> SSAValue:
        infinity = self.constant(math.inf, dtype)
        return self._put(arith.CmpfOp(self._put(maths.AbsFOp(args[0])), infinity, "oeq"))

    def _integer(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        if op in ("div", "rem", "mod"):
            return self._division(op, args, dtype)
        if op in ("shl", "shr"):
            return self._shift(op, args, dtype)
        if op == "pow" and not is_signed(dtype):
            return self._unsigned_power(args, dtype)
        if OPERATORS[op].integers:
            return self._put(_upstream(_of_integers(op, dtype), args))
        return self._integer_unary(op, args[0], dtype)

    def _integer_unary(self, op: str, value: SSAValue, dtype: str) -> SSAValue:
        zero = self.constant(0, dtype)
        if op == "not":
            return self._put(arith.XOrIOp(value, self.constant(-1, dtype)))
        if op == "abs" and not is_signed(dtype):
            return value
        negated = self._put(arith.SubiOp(zero, value))
        if op == "neg":
            return negated
        if op == "abs":
            return self._put(arith.SelectOp(self._compare("lt", value, zero, dtype), negated, value))
        return self._integer_sign(value, zero, dtype)

    def _integer_sign(self, value: SSAValue, zero: SSAValue, dtype: str) -> SSAValue:
        one = self.constant(1, dtype)
        positive = self._put(arith.SelectOp(self._compare("gt", value, zero, dtype), one, zero))
        if not is_signed(dtype):
            return positive
        negative = self._compare("lt", value, zero, dtype)
        return self._put(arith.SelectOp(negative, self.constant(-1, dtype), positive))

    def _division(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        """Division by zero gives zero; the one overflow (lowest / -1) wraps, because -1 is divided by negation."""
        value, divisor = args
        zero, one = self.constant(0, dtype), self.constant(1, dtype)
        is_zero = self._compare("eq", divisor, zero, dtype)
        unsafe = is_zero
        if is_signed(dtype):
            is_minus_one = self._compare("eq", divisor, self.constant(-1, dtype), dtype)
            unsafe = self._put(arith.OrIOp(is_zero, is_minus_one))
        safe = self._put(arith.SelectOp(unsafe, one, divisor))
        raw = self._put(_upstream(_of_integers("div" if op == "div" else "rem", dtype), [value, safe]))
        if op == "div" and is_signed(dtype):
            negated = self._put(arith.SubiOp(zero, value))
            raw = self._put(arith.SelectOp(unsafe, negated, raw))
        result = self._put(arith.SelectOp(is_zero, zero, raw))
        return self._to_sign_of_divisor(result, divisor, dtype) if op == "mod" and is_signed(dtype) else result

    def _shift(self, op: str, args: list[SSAValue], dtype: str) -> SSAValue:
        """A shift by the width or more gives what shifting bit by bit gives: zero, or the sign.

        An amount that is a constant below the width, or whose bits are those of one, is less.
        """
        width = int(dtype.lstrip("ui"))
        known = args[1].owner.value if isinstance(args[1].owner, arith.ConstantOp) else None
        if isinstance(args[1].owner, arith.AndIOp):
            known = next((c.owner.value for c in args[1].owner.operands if isinstance(c.owner, arith.ConstantOp)), None)
        if isinstance(known, IntegerAttr) and 0 <= known.value.data < width:
            return self._put(_upstream(_of_integers(op, dtype), args))
        last = self.constant(width - 1, dtype)
        too_far = self._put(arith.CmpiOp(args[1], last, "ugt"))
        amount = self._put(arith.SelectOp(too_far, last, args[1]))
        shifted = self._put(_upstream(_of_integers(op, dtype), [args[0], amount]))
        if op == "shr" and is_signed(dtype):
            return shifted
        return self._put(arith.SelectOp(too_far, self.constant(0, dtype), shifted))

    def _unsigned_power(self, args: list[SSAValue], dtype: str) -> SSAValue:
        """x^n as (x^(n/2))^2 x^(n%2): math.ipowi reads its exponent as signed, and n/2 is not negative."""
        base, exponent = args
        one = self.constant(1, dtype)
        half = self._put(maths.IPowIOp(base, self._put(arith.ShRUIOp(exponent, one))))
        odd = self._compare("ne", self._put(arith.AndIOp(exponent, one)), self.constant(0, dtype), dtype)
        square = self._put(arith.MuliOp(half, half))
        return self._put(arith.MuliOp(square, self._put(arith.SelectOp(odd, base, one))))

    def cast(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """Conversion between element types, on values of their compute types."""
        if source == target:
            return value
        if is_float(source):
            return self._cast_float(value, source, target)
        if target == "i1":
            return self._compare("ne", value, self.constant(0, source), source)
        if is_float(target):
            convert = arith.SIToFPOp if is_signed(source) else arith.UIToFPOp
            return self.round_to(self._put(convert(value, _as_float(compute_type(target)))), target)
        return self._resize(value, source, target)

    def cast_bits(self, value: SSAValue, source: str, target: str) -> SSAValue:
        """The bits of a value read as another element type of the same width; a boolean is the byte 0 or 1."""
        if "i1" in (source, target):
            return self.cast(value, source, target)
        type_, stored = storage_type(target), self.to_storage(value, source)
        return self.from_storage(stored if stored.type == type_ else self._put(arith.BitcastOp(stored, type_)), target)

    def _cast_float(self, value: SSAValue, source: str, target: str) -> SSAValue:
        if target == "i1":
            return self._compare("ne", value, self.constant(0.0, source), source)
        if not is_float(target):
            convert = arith.FPToSIOp if is_signed(target) else arith.FPToUIOp
            return self._put(convert(value, _as_integer(compute_type(target))))
        return self.round_to(self._resize_float(value, compute_type(target)), target)

    def _resize_float(self, value: SSAValue, type_: Attribute) -> SSAValue:
        if value.type == type_:
            return value
        wider = value.type == element_type("f32")
        return self._put(arith.ExtFOp(value, _as_float(type_)) if wider else arith.TruncFOp(value, _as_float(type_)))

    def _resize(self, value: SSAValue, source: str, target: str) -> SSAValue:
        type_ = _as_integer(compute_type(target))
        have, want = int(source.lstrip("ui")), int(target.lstrip("ui"))
        if have == want:
            return value
        if have > want:
            return self._put(arith.TruncIOp(value, type_))
        extend = arith.ExtSIOp if is_signed(source) else arith.ExtUIOp
        return self._put(extend(value, type_))

    def round_to(self, value: SSAValue, dtype: str) -> SSAValue:
        """A computed value rounded to the precision of its element type, still of its compute type."""
        return self.from_storage(self.to_storage(value, dtype), dtype)

    def to_storage(self, value: SSAValue, dtype: str) -> SSAValue:
        """A computed value as it is stored; one that lay in memory so is moved, bit by bit."""
        type_ = storage_type(dtype)
        extension = value.owner
        if isinstance(extension, arith.ExtFOp) and extension.input.type == type_:
            return extension.input
        return value if value.type == type_ else self._put(arith.TruncFOp(value, _as_float(type_)))

    def from_storage(self, value: SSAValue, dtype: str) -> SSAValue:
        """A stored value as it is computed on."""
        type_ = compute_type(dtype)
        return value if value.type == type_ else self._put(arith.ExtFOp(value, _as_float(type_)))

    def _put(self, op: Operation) -> SSAValue:
        return self._insert(op).results[0]


class _FormulaEmitter(BodyEmitter):
    """Emits each value that a formula uses several times once."""

    @cached_property
    def _known(self) -> dict[Scalar, SSAValue]:
        return {}

    def emit(self, scalar: Scalar) -> SSAValue:
        if scalar not in self._known:
            self._known[scalar] = super().emit(scalar)
        return self._known[scalar]


def _of_integers(op: str, dtype: str) -> str:
    """The upstream operation of a scalar operator on integers; of two, the second is that on unsigned ones."""
    names = OPERATORS[op].integers
    return names[0] if is_signed(dtype) else names[-1]


def _as_float(type_: Attribute) -> AnyFloat:
    return cast(AnyFloat, type_)


def _as_integer(type_: Attribute) -> IntegerType[int, Signedness]:
    return cast("IntegerType[int, Signedness]", type_)


def _wrapped(value: int, width: int) -> int:
    """An integer as the signless attribute of a width holds it."""
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value
