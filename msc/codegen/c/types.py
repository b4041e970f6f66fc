"""C types of IR types: `f32` is float, `vector<16xf32>` is the GCC vector type f32x16."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from msc.ir.typed import is_memref, is_vector
from msc.support.diagnostics import Diagnostic, MscError

INDEX_TYPE = "«index»"
"""Stands in C for the type of indices until a program's machine says it: names and comments are ASCII."""
_SCALARS = {
    "f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double", "index": INDEX_TYPE, "i1": "bool",
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
}  # fmt: skip
_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "index": 64, "i1": 8}


@dataclass(frozen=True)
class CType:
    """A scalar (`lanes` 0) or vector type. A `mask` is a vector of booleans: integers, each lane 0 or -1."""

    base: str
    lanes: int = 0
    mask: bool = False

    @property
    def is_vector(self) -> bool:
        return self.lanes > 0

    @property
    def is_float(self) -> bool:
        return self.base in ("f16", "bf16", "f32", "f64")

    @property
    def bits(self) -> int:
        """Of one element in memory."""
        return _BITS.get(self.base) or int(self.base[1:])

    @property
    def name(self) -> str:
        """How C spells it."""
        return f"{_storage(self.base)}x{self.lanes}" if self.is_vector else _SCALARS[self.base]

    @property
    def element(self) -> CType:
        """The type of one lane."""
        return CType(self.base)

    @property
    def unsigned(self) -> CType:
        """The unsigned integer type of the same width and lanes: its arithmetic wraps."""
        return replace(self, base=f"u{self.bits}", mask=False)

    @property
    def signed(self) -> CType:
        return replace(self, base=f"i{self.bits}", mask=False)

    @property
    def real(self) -> CType:
        """The floating-point type of the same width and lanes."""
        return replace(self, base=f"f{self.bits}", mask=False)


def _storage(base: str) -> str:
    return {"f16": "u16", "bf16": "u16", "index": "i64", "i1": "u8"}.get(base, base)


def memory_name(base: str) -> str:
    """How C spells an element in memory: a boolean is one byte, so that any byte may be read."""
    return "uint8_t" if base == "i1" else _SCALARS[base]


def base_name(type_: Attribute) -> str:
    """The base of an element type. Raises MSC0905 for a type that has no C form here."""
    for kind, name in ((Float32Type, "f32"), (Float64Type, "f64"), (Float16Type, "f16"), (BFloat16Type, "bf16")):
        if isinstance(type_, kind):
            return name
    if isinstance(type_, IndexType):
        return "index"
    if isa(type_, IntegerType) and type_.width.data in (1, 8, 16, 32, 64):
        return f"i{type_.width.data}"
    raise no_c_form(f"the type {type_}")


def value_type(type_: Attribute) -> CType:
    """The C type of an SSA value that is a scalar or a vector."""
    if not is_vector(type_):
        return CType(base_name(type_))
    shape = type_.get_shape()
    if len(shape) != 1 or shape[0] < 2 or shape[0] & (shape[0] - 1):
        raise no_c_form(f"the vector type {type_}")
    return CType(base_name(type_.element_type), shape[0])


@dataclass(frozen=True)
class CArrayType:
    """A buffer: elements of `base` in row-major order."""

    base: str
    shape: tuple[int, ...]
    open_strides: tuple[str, ...] = ()
    """Elements between neighbours along each dimension where calls decide them: C expressions that are factors."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours along each dimension; of the largest sizes, where calls decide them."""
        strides, step = list[int](), 1
        for size in reversed(self.shape):
            strides.append(step)
            step *= max(size, 1)
        return tuple(reversed(strides))

    @property
    def known_strides(self) -> tuple[int | None, ...]:
        """The strides that no call decides."""
        return tuple(int(s) if s.isdecimal() else None for s in self.open_strides) or self.strides

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def item_bytes(self) -> int:
        return CType(self.base).bits // 8

    @property
    def bytes(self) -> int:
        return self.elements * self.item_bytes

    def declarator(self, name: str, qualifier: str = "") -> str:
        """`name[restrict 6][28][28]`: a parameter that points to the first row. A rank-0 buffer is one element.

        Where calls decide strides it points to the first element.
        """
        if self.open_strides:
            return f"*{qualifier} {name}" if qualifier else f"*{name}"
        first, *rest = self.shape or (1,)
        inner = f"{qualifier} {max(first, 1)}" if qualifier else str(max(first, 1))
        return f"{name}[{inner}]" + "".join(f"[{max(size, 1)}]" for size in rest)

    @property
    def row_pointer(self) -> str:
        """`(*)[28][28]`, or `*` for rank 0 and 1: the declarator of a pointer to the first row."""
        rest = self.shape[1:]
        return "(*)" + "".join(f"[{max(size, 1)}]" for size in rest) if rest else "*"


def buffer_type(type_: Attribute) -> CArrayType:
    """The buffer type of a static memref with the default layout."""
    if not is_memref(type_) or any(size < 0 for size in type_.get_shape()):
        raise no_c_form(f"the buffer type {type_}")
    return CArrayType(base_name(type_.element_type), tuple(type_.get_shape()))


def no_c_form(what: str) -> MscError:
    """MSC0905: the IR holds something that the C generator has no text for."""
    return MscError(Diagnostic("MSC0905", f"{what} has no C form at the loop stage"))
