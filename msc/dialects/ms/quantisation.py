"""Quantised values: integers that stand for reals by a scale and a zero point, `real = (integer - zero) * scale`.

Scale and zero point are operands, constants or parameters: of rank 0 for one a tensor, of a shape that broadcasts
for one an index of an axis (`[oc, 1, 1]` for the channels of an image) or one a block. Source: ONNX QuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def

from msc.dialects.ms.base import BasicTensorOp
from msc.dialects.ms.elementwise import constant, named_dtype, operand_read, pointwise_statement
from msc.dialects.ms.properties import choice_property, dtype_property, flag_property, int_property
from msc.dialects.ms.shapes import broadcast_shapes, same_shape, same_size, shape_text, tensor_type
from msc.ir.errors import DtypeConflict, InvalidAttribute, ShapeConflict
from msc.poly.compute import Statement, affine_map, dims, integer_range
from msc.poly.scalar import Cast, Read, Scalar, apply

QUANTISED = ("i8", "ui8", "i16", "ui16")
"""Element types of quantised values; sums of their products are i32, with the zero point 0."""


def real_type(*dtypes: str) -> str:
    """The type in which a scale multiplies or divides: f32, or f64 if an operand has that."""
    return "f64" if "f64" in dtypes else "f32"


def _cast(scalar: Scalar, dtype: str) -> Scalar:
    return scalar if scalar.dtype == dtype else Cast(scalar, dtype)


class QuantisationOp(BasicTensorOp):
    """Base: x, a scale and a zero point, which is 0 if it is not given; scale and zero point broadcast to x."""

    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)

    def shape_of_x(self) -> tuple[int, ...]:
        """The shape of x. Raises ShapeConflict unless scale and zero point broadcast to it."""
        shape = self.shape(0)
        for index, what in ((1, "scale"), (2, "zero point"))[: len(self.operands) - 1]:
            if not same_shape(broadcast_shapes(self.name, shape, self.shape(index)), shape):
                raise ShapeConflict(
                    f"{self.name}: a {what} of {shape_text(self.shape(index))} does not broadcast to x of "
                    f"{shape_text(shape)}"
                )
        return shape

    def expect_zero_of(self, dtype: str) -> None:
        """Raise DtypeConflict if there is a zero point of another type than the quantised values."""
        if self.zero is not None and self.dtype(2) != dtype:
            raise DtypeConflict(f"{self.name}: the zero point has element type {self.dtype(2)}, the values {dtype}")

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        args = [operand_read(self, i, shape) for i in range(len(self.operands))]
        return (pointwise_statement(shape, self.scalar(*args)),)

    def scalar(self, *args: Scalar) -> Scalar:
        """The value of one element from those of the operands."""
        raise TypeError(f"{self.name} does not say what it computes")


class QuantisingOp(QuantisationOp):
    """Base of operations that round to the quantised type `dtype`."""

    target = dtype_property()

    def target_type(self) -> str:
        """The type of the result. Raises InvalidAttribute and DtypeConflict."""
        name = named_dtype(self.name, self.plain("dtype"))
        if name not in QUANTISED:
            raise InvalidAttribute(f"{self.name}: dtype is {name}, not one of {', '.join(QUANTISED)}")
        self.expect_zero_of(name)
        return name

    def rounded(self, real: Scalar, *zero: Scalar) -> Scalar:
        """Half to even first, then moved by the zero point, then cut to the range: in f32, which is exact there."""
        target = self.result_dtype()
        low, high = integer_range(target)
        moved = _cast(apply("round", real), "f32")
        for each in zero:
            moved = apply("add", moved, Cast(each, "f32"))
        return Cast(apply("min", apply("max", moved, constant(low, "f32")), constant(high, "f32")), target)


@irdl_op_definition
class QuantizeOp(QuantisingOp):
    """Floats as integers: `round(x / scale) + zero`, half to even, cut to the range of `dtype` (8 or 16 bits).

    x and the scale are floats; they are divided in f32, or f64 if one is of that type. The gradient of x through this
    and `ms.dequantize` is 1 where nothing is cut, else 0 (straight through). ONNX QuantizeLinear.
    """

    name = "ms.quantize"
    EXAMPLE: ClassVar[str] = "2x3xT T ui8 {dtype = ui8}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        for index in (0, 1):
            self.expect_dtype(index, "a float")
        return (tensor_type(self.target_type(), self.shape_of_x()),)

    def scalar(self, *args: Scalar) -> Scalar:
        real = real_type(self.dtype(0), self.dtype(1))
        return self.rounded(apply("div", _cast(args[0], real), _cast(args[1], real)), *args[2:])


@irdl_op_definition
class DequantizeOp(QuantisationOp):
    """Integers as floats of the scale's type: `(x - zero) * scale`.

    x is of 8, 16 or 32 bits; the difference is exact. ONNX DequantizeLinear.
    """

    name = "ms.dequantize"
    EXAMPLE: ClassVar[str] = "2x3xi8 T i8"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if self.dtype(0) not in (*QUANTISED, "i32"):
            raise DtypeConflict(f"{self.name}: x has element type {self.dtype(0)}, not {', '.join(QUANTISED)} or i32")
        self.expect_zero_of(self.dtype(0))
        return (tensor_type(self.expect_dtype(1, "a float"), self.shape_of_x()),)

    def scalar(self, *args: Scalar) -> Scalar:
        moved = _cast(args[0], "i32")
        for each in args[2:]:
            moved = apply("sub", moved, _cast(each, "i32"))
        real = real_type(self.dtype(1))
        return _cast(apply("mul", Cast(moved, real), _cast(args[1], real)), self.dtype(1))


@irdl_op_definition
class RequantizeOp(QuantisingOp):
    """Sums of integer products as integers of another scale: `round(f32(x) * scale) + zero`, cut to `dtype`'s range.

    x is i32; the scale, that of x over that of the result, multiplies it in f32, or f64 if it has that type.
    ONNX QLinearConv, QLinearMatMul.
    """

    name = "ms.requantize"
    EXAMPLE: ClassVar[str] = "2x3xi32 3xf32 i8 {dtype = i8}"

    def infer(self) -> Sequence[TensorType[Attribute]]:
        if self.dtype(0) != "i32":
            raise DtypeConflict(f"{self.name}: x has element type {self.dtype(0)}, but must be i32")
        self.expect_dtype(1, "a float")
        return (tensor_type(self.target_type(), self.shape_of_x()),)

    def scalar(self, *args: Scalar) -> Scalar:
        real = real_type(self.dtype(1))
        return self.rounded(apply("mul", Cast(args[0], real), _cast(args[1], real)), *args[2:])


@irdl_op_definition
class RescaleOp(BasicTensorOp):
    """Integers times a factor in fixed point: `x * multiplier * 2^(shift - 31) + zero`, cut to the range of `dtype`.

    x is i32, or i64 if it rounds once; multiplier and shift (-31 to 31) are i32; zero is of `dtype`, which has 8 or
    16 bits or is i32. All broadcast to x. With `rounding = "double"`, x is moved left by a positive shift, the product
    is rounded to its upper half, ties upwards, and that is moved right by a negative shift, ties away from zero; with
    "single" the product is rounded once, ties upwards. `narrow` says that |x| stays below 2^30, multipliers are not
    negative, shifts lie in -22 to -1, and a zero point has 8 bits: fewer instructions do. TensorFlow Lite
    MultiplyByQuantizedMultiplier, TOSA RESCALE.
    """

    name = "ms.rescale"
    EXAMPLE: ClassVar[str] = "2x3xi32 3xi32 3xi32 i8 {dtype = i8}"
    CHOICES: ClassVar[Mapping[str, tuple[str, ...]]] = {"rounding": ("double", "single")}

    x = operand_def(TensorType)
    multiplier = operand_def(TensorType)
    shift = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    target = dtype_property()
    rounding = choice_property("double")
    narrow = flag_property(default=False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        target, wide = named_dtype(self.name, self.plain("dtype")), self.word("rounding") == "single"
        if target not in (*QUANTISED, "i32"):
            raise InvalidAttribute(f"ms.rescale: dtype is {target}, not one of {', '.join(QUANTISED)}, i32")
        if self.dtype(0) != "i32" and not (wide and self.dtype(0) == "i64"):
            raise DtypeConflict(f"ms.rescale: x has element type {self.dtype(0)}, but must be i32{' or i64' * wide}")
        for index, dtype in ((1, "i32"), (2, "i32"), (3, target))[: len(self.operands) - 1]:
            if self.dtype(index) != dtype:
                raise DtypeConflict(f"ms.rescale: operand {index} has element type {self.dtype(index)}, not {dtype}")
            if not same_shape(broadcast_shapes(self.name, self.shape(0), self.shape(index)), self.shape(0)):
                raise ShapeConflict(
                    f"ms.rescale: operand {index} of {shape_text(self.shape(index))} does not broadcast to x of "
                    f"{shape_text(self.shape(0))}"
                )
        return (tensor_type(target, self.shape(0)),)

    def compute(self) -> Sequence[Statement]:
        shape = self.result_shape()
        args = [operand_read(self, i, shape) for i in range(len(self.operands))]
        return (pointwise_statement(shape, self.scalar(*args)),)

    def scalar(self, x: Scalar, multiplier: Scalar, shift: Scalar, *zero: Scalar) -> Scalar:
        """The value of one element from those of the operands."""
        target, twice = self.result_dtype(), self.word("rounding") == "double"
        if twice and self.plain("narrow"):
            value = _rounded_twice_narrow(x, multiplier, shift, *zero)
        else:
            value = (_rounded_twice if twice else _rounded_once)(x, multiplier, shift)
            for each in zero:
                value = apply("add", value, _cast(each, "i32"))
        if target == "i32":
            return value
        low, high = integer_range(target)
        return Cast(apply("min", apply("max", value, constant(low, "i32")), constant(high, "i32")), target)


@irdl_op_definition
class PackedMatmulOp(BasicTensorOp):
    """x `[m, k]` times weights of 2, 4 or 8 `bits` in blocks of k, that share a scale and a zero point: `[m, n]`.

    A weight is `(code - zero) * scale`; without zero points half of the codes are below zero. Codes are ui8
    `[panels, blocks, bytes, width]` of `panels * width` columns: byte j of a block has the code of its number j in the
    lowest bits, and those of numbers `j + bytes`, `j + 2 * bytes`, ... above. Scales (floats) and zero points (ui8, or
    of the scales' type) are `[panels, blocks, width]`. x and sums are f32; k is a whole number of blocks. With `rounds`
    each block of a row of x is rounded to 8 bits first, its greatest magnitude to 127: products may then be of
    integers. Sources: ONNX Runtime MatMulNBits (with `accuracy_level` 4), llama.cpp Q4_0.
    """

    name = "ms.packed_matmul"
    EXAMPLE: ClassVar[str] = "3x64xf32 1x2x16x8xui8 1x2x8xf32"
    x = operand_def(TensorType)
    codes = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    bits = int_property(4)
    rounds = flag_property(default=False)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        bits = self.int_("bits")
        if bits not in (2, 4, 8):
            raise InvalidAttribute(f"{self.name}: bits is {bits}, not 2, 4 or 8")
        (m, k), (panels, blocks, size, width) = self.expect_rank(0, 2), self.expect_rank(1, 4)
        if self.dtype(0) != "f32" or self.dtype(1) != "ui8":
            raise DtypeConflict(f"{self.name}: x and codes are {self.dtype(0)} and {self.dtype(1)}, not f32 and ui8")
        self.expect_dtype(2, "a float")
        if self.zero is not None and self.dtype(3) not in ("ui8", self.dtype(2)):
            raise DtypeConflict(f"{self.name}: zero points are {self.dtype(3)}, not ui8 or {self.dtype(2)}")
        for index in range(2, len(self.operands)):
            if not same_shape(self.shape(index), (panels, blocks, width)):
                raise ShapeConflict(
                    f"{self.name}: operand {index} is {shape_text(self.shape(index))}, not "
                    f"{shape_text((panels, blocks, width))}, which the codes ask for"
                )
        known = -1 not in (blocks, size)
        if known and not same_size(k, blocks * size * (8 // bits)):
            raise ShapeConflict(
                f"{self.name}: x of {shape_text(self.shape(0))} does not fit {blocks} blocks of {size * (8 // bits)}"
            )
        return (tensor_type("f32", (m, -1 if -1 in (panels, width) else panels * width)),)

    def compute(self) -> Sequence[Statement]:
        if self.flag("rounds"):
            raise TypeError(f"{self.name} that rounds x is expanded by `quantised-products`")
        bits, (m, _), (panels, blocks, size, width) = self.int_("bits"), self.shape(0), self.shape(1)
        row, panel, column, block, byte = dims(5)
        code = Read(1, affine_map(5, (panel, block, byte, column)), "ui8")
        scale, *zero = (
            Read(index, affine_map(5, (panel, block, column)), self.dtype(index))
            for index in range(2, len(self.operands))
        )
        middle = _cast(zero[0], "f32") if zero else constant(1 << (bits - 1), "f32")
        terms: list[Scalar] = []
        for part in range(8 // bits):
            whole: Scalar = Cast(code, "i32")
            if part:
                whole = apply("shr", whole, constant(bits * part, "i32"))
            if bits * (part + 1) < 8:
                whole = apply("and", whole, constant((1 << bits) - 1, "i32"))
            x = Read(0, affine_map(5, (row, block * (size * (8 // bits)) + size * part + byte)), "f32")
            weight = apply("mul", apply("sub", Cast(whole, "f32"), middle), _cast(scale, "f32"))
            terms.append(apply("mul", x, weight))
        body = terms[0]
        for term in terms[1:]:
            body = apply("add", body, term)
        write = affine_map(5, (row, panel * width + column))
        return (Statement((m, panels, width, blocks, size), ("m", "p", "n", "b", "k"), write, body, "add"),)


@irdl_op_definition
class PackedDotOp(BasicTensorOp):
    """Rows of bytes times packed weights, by blocks: `[m, n]` of f32. What `ms.packed_matmul` that rounds becomes.

    x has words of four bytes with a sign `[m, words]` (i32), a scale and the sum of the bytes (i32) for each block of a
    row `[m, blocks]`. Codes are words `[panels, blocks, words, width]` (i32): byte j of a word is of number j of four
    that follow each other, in the lowest `bits` those of the first part of a block, above them those of the next.
    Scales and zero points are those of `ms.packed_matmul`. Sums of a block are i32; blocks are summed in f32.
    """

    name = "ms.packed_dot"
    EXAMPLE: ClassVar[str] = "3x16xi32 3x2xf32 3x2xi32 1x2x4x8xi32 1x2x8xf32"
    x = operand_def(TensorType)
    x_scale = operand_def(TensorType)
    x_sum = operand_def(TensorType)
    codes = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero = opt_operand_def(TensorType)
    bits = int_property(4)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        bits = self.int_("bits")
        if bits not in (2, 4, 8):
            raise InvalidAttribute(f"{self.name}: bits is {bits}, not 2, 4 or 8")
        (m, words), (panels, blocks, size, width) = self.expect_rank(0, 2), self.expect_rank(3, 4)
        for index, dtype in enumerate(("i32", "f32", "i32", "i32")):
            if self.dtype(index) != dtype:
                raise DtypeConflict(f"{self.name}: operand {index} is {self.dtype(index)}, not {dtype}")
        self.expect_dtype(4, "a float")
        if self.zero is not None and self.dtype(5) not in ("ui8", self.dtype(4)):
            raise DtypeConflict(f"{self.name}: zero points are {self.dtype(5)}, not ui8 or {self.dtype(4)}")
        wanted = {
            1: (m, blocks),
            2: (m, blocks),
            **dict.fromkeys(range(4, len(self.operands)), (panels, blocks, width)),
        }
        for index, shape in wanted.items():
            if not same_shape(self.shape(index), shape):
                raise ShapeConflict(
                    f"{self.name}: operand {index} is {shape_text(self.shape(index))}, not {shape_text(shape)}"
                )
        if not same_size(words, blocks * size * (8 // bits)):
            raise ShapeConflict(
                f"{self.name}: x of {words} words does not fit {blocks} blocks of {size * (8 // bits)} words"
            )
        return (tensor_type("f32", (m, -1 if -1 in (panels, width) else panels * width)),)

    def compute(self) -> Sequence[Statement]:
        """One step of the sum is a block, its words side by side: what does not depend on rows is unpacked once."""
        bits, (m, _), (panels, blocks, size, width) = self.int_("bits"), self.shape(0), self.shape(3)
        parts = 8 // bits
        row, panel, column, block = dims(4)
        by_block = affine_map(4, (row, block))
        of_weight = affine_map(4, (panel, block, column))
        total: Scalar = constant(0, "i32")
        if self.zero is None:
            total = apply("mul", Read(2, by_block, "i32"), constant(-(1 << (bits - 1)), "i32"))
        for word in range(size):
            code: Scalar = Read(3, affine_map(4, (panel, block, AffineExpr.constant(word), column)), "i32")
            for part in range(parts):
                part_of: Scalar = apply("shr", code, constant(bits * part, "i32")) if part else code
                if parts > 1:
                    part_of = apply("and", part_of, constant(((1 << bits) - 1) * 0x01010101, "i32"))
                x = Read(0, affine_map(4, (row, block * (size * parts) + (size * part + word))), "i32")
                total = apply("dot_bytes", part_of, x, total)
        value: Scalar = Cast(total, "f32")
        if self.zero is not None:
            by_zero = apply(
                "mul", _cast(Read(5, of_weight, self.dtype(5)), "f32"), Cast(Read(2, by_block, "i32"), "f32")
            )
            value = apply("sub", value, by_zero)
        scale = apply("mul", Read(1, by_block, "f32"), _cast(Read(4, of_weight, self.dtype(4)), "f32"))
        write = affine_map(4, (row, panel * width + column))
        body = apply("mul", value, scale)
        return (Statement((m, panels, width, blocks), ("m", "p", "n", "b"), write, body, "add"),)


def _rounded_once(x: Scalar, multiplier: Scalar, shift: Scalar) -> Scalar:
    right = Cast(apply("sub", constant(31, "i32"), shift), "i64")
    half = apply("shl", constant(1, "i64"), apply("sub", right, constant(1, "i64")))
    product = apply("mul", _cast(x, "i64"), Cast(multiplier, "i64"))
    return Cast(apply("shr", apply("add", product, half), right), "i32")


def _rounded_twice(x: Scalar, multiplier: Scalar, shift: Scalar) -> Scalar:
    """The upper half of the product in i64, all else in i32; what depends on the shift alone is one for a channel.

    What is cut off on the right counts up where it is more than half, and of numbers below 0 more than half and one:
    then the difference has its sign.
    """
    none, one, last = constant(0, "i32"), constant(1, "i32"), constant(31, "i32")
    left = apply("and", apply("max", shift, none), last)
    right = apply("and", apply("max", apply("sub", none, shift), none), last)
    product = apply("mul", Cast(apply("shl", x, left), "i64"), Cast(multiplier, "i64"))
    rounded = apply("add", product, constant(1 << 30, "i64"))
    upper = Cast(apply("shr", rounded, constant(31, "i64")), "i32")
    cut = apply("sub", apply("shl", one, right), one)
    half = apply("sub", apply("shr", cut, one), apply("shr", upper, last))
    up = apply("shr", apply("sub", half, apply("and", upper, cut)), last)
    return apply("sub", apply("shr", upper, right), up)


def _rounded_twice_narrow(x: Scalar, multiplier: Scalar, shift: Scalar, *zero: Scalar) -> Scalar:
    """The same for `narrow`, with the zero point in what is added before the shift: nothing overflows.

    Half of a unit makes ties round upwards, and of numbers below 0 one less does so downwards. The upper half has the
    sign of x, or is 0: one less than half a unit is 0 then, too.
    """
    one, last = constant(1, "i32"), constant(31, "i32")
    right = apply("and", apply("sub", constant(0, "i32"), shift), last)
    product = apply("mul", Cast(apply("shl", x, one), "i64"), Cast(multiplier, "i64"))
    upper = Cast(apply("shr", apply("add", product, constant(1 << 31, "i64")), constant(32, "i64")), "i32")
    added = apply("shr", apply("shl", one, right), one)
    for each in zero:
        added = apply("add", added, apply("shl", _cast(each, "i32"), right))
    moved = apply("add", apply("add", upper, apply("shr", x, last)), added)
    return apply("shr", moved, right)
