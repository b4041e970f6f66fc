"""Sizes that a call decides, as attributes: `ms.sizes = {batch = array<i64: 1, 64>}`, and valid parts over them.

A module has the attribute if its entry's arguments name such sizes in `ms.dims`; shapes are then those of the largest.
A kernel has `gk.sizes`, the same, and `gk.valid`: for each input the factors of each dimension, as a map from the
sizes, in alphabetical order, to the bound and the capacity of each factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap
from xdsl.utils.hints import isa

from msc.dialects.gk import CallKernelOp, KernelOp
from msc.dialects.ms.attributes import MS_NAME
from msc.ir.errors import InvalidStructure
from msc.poly.valid_extents import Factor, Size, ValidExtent, ValidShape, is_whole

SIZES = "ms.sizes"
DIMENSIONS = "ms.dims"
RANGE = "ms.range"
CONSTANT = "ms.size"
"""Of a constant whose value is an expression over the sizes: a map from them to it."""
VALID = "ms.valid"
"""Of a result of the entry function, or of an `ms.iota`: the factors of each of its dimensions, as in `gk.valid`."""
WHOLE = "ms.whole"
"""Of a result that is written whole, or an argument that may be read anywhere, whatever part of it is valid."""
COMPACT = "ms.compact"
"""Of an argument of the entry function that lies in memory like any array, whatever its open sizes, and of a kernel's
parameter that takes it: a map from the sizes among the kernel's arguments to the extents of its dimensions."""
COUNTS = "ms.counts"
"""Of a result of the entry function: for each dimension the name of the result (i64, no dimensions) that says how many
of its elements are meant; "" where all are."""
INSIDE = "ms.inside"
"""Of an `ms.extract_slice` or `ms.insert_slice` along an open size: its index is computed to lie in what is valid."""
KERNEL_SIZES, KERNEL_VALID = "gk.sizes", "gk.valid"


def module_sizes(module: ModuleOp) -> tuple[Size, ...]:
    """The sizes that a call of the module decides, in alphabetical order."""
    return read_sizes(module.attributes.get(SIZES))


def has_open_sizes(op: Operation) -> bool:
    """Whether calls of the module around an operation decide sizes."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return SIZES in op.attributes


def read_sizes(attribute: Attribute | None) -> tuple[Size, ...]:
    """The sizes of an attribute. Raises InvalidStructure for another form."""
    if attribute is None:
        return ()
    if not isa(attribute, DictionaryAttr):
        raise InvalidStructure(f"{SIZES} is not a dictionary")
    return tuple(Size(name, *read_range(value)) for name, value in sorted(attribute.data.items()))


def read_range(attribute: Attribute | None) -> tuple[int, int]:
    """The least and the largest value of a size. Raises InvalidStructure for another form."""
    if isa(attribute, DenseArrayBase[IntegerType]):
        values = tuple(int(v) for v in attribute.get_values())
        if len(values) == 2 and 1 <= values[0] <= values[1]:
            return values[0], values[1]
    raise InvalidStructure(f"the range of a size is {attribute}, not array<i64: LEAST, LARGEST>")


def range_attribute(size: Size) -> Attribute:
    """The range of a size."""
    return DenseArrayBase.from_list(i64, [size.low, size.high])


def size_attributes(size: Size) -> DictionaryAttr:
    """The attributes of an argument that is a size."""
    return DictionaryAttr({MS_NAME: StringAttr(size.name), RANGE: range_attribute(size)})


def compact_extents(attributes: ArrayAttr[DictionaryAttr] | None) -> Iterator[tuple[int, AffineMap]]:
    """The parameters of a kernel that lie like any array, by number, with their extents over its sizes."""
    for number, given in enumerate(attributes or ()):
        extents = given.data.get(COMPACT)
        if isinstance(extents, AffineMapAttr):
            yield number, extents.data


def argument_sizes(arguments: Sequence[SSAValue], attributes: ArrayAttr[DictionaryAttr] | None) -> dict[SSAValue, Size]:
    """The arguments of a function that are sizes."""
    found: dict[SSAValue, Size] = {}
    for argument, given in zip(arguments, attributes or (), strict=False):
        name = given.data.get(MS_NAME)
        if RANGE in given.data and isinstance(name, StringAttr):
            found[argument] = Size(name.data, *read_range(given.data[RANGE]))
    return found


def sizes_attribute(sizes: Iterable[Size]) -> DictionaryAttr:
    """The inverse of `read_sizes`."""
    return DictionaryAttr({size.name: range_attribute(size) for size in sizes})


def named_dims(attributes: Mapping[str, Attribute], rank: int) -> tuple[str, ...]:
    """The names of an argument's dimensions; "" for one without."""
    given = attributes.get(DIMENSIONS)
    names = [a.data if isinstance(a, StringAttr) else "" for a in given] if isa(given, ArrayAttr[Attribute]) else []
    return tuple([*names, *[""] * rank][:rank])


def valid_argument(shape: Sequence[int], names: Sequence[str], sizes: Sequence[Size]) -> ValidShape:
    """The valid part of an argument whose dimensions have these names."""
    position = {size.name: k for k, size in enumerate(sizes)}
    return tuple(
        (Factor(n, AffineExpr.dimension(position[name]) if name in position else None),)
        for n, name in zip(shape, names, strict=True)
    )


def valid_tensor(attributes: Mapping[str, Attribute], shape: Sequence[int], sizes: Sequence[Size]) -> ValidShape:
    """The valid part of an argument or result of the entry function: `ms.valid`, or what its dimensions are named."""
    given = attributes.get(VALID)
    if isa(given, ArrayAttr[AffineMapAttr]):
        return tuple(_dim(map_.data) for map_ in given)
    return valid_argument(shape, named_dims(attributes, len(shape)), sizes)


def valid_attribute(valid: ValidShape, sizes: Sequence[Size]) -> ArrayAttr[AffineMapAttr]:
    """The factors of each dimension."""
    return ArrayAttr([_dim_attribute(dim, len(sizes)) for dim in valid])


def set_valid_inputs(kernel: KernelOp | CallKernelOp, shapes: Sequence[ValidShape], sizes: Sequence[Size]) -> None:
    """Note on a kernel what of its inputs is valid; nothing where all is and no constant is one of a size."""
    if all(is_whole(dim) for valid in shapes for dim in valid) and not any(
        depends_on_sizes(op) for op in kernel.walk()
    ):
        kernel.attributes.pop(KERNEL_SIZES, None)
        kernel.attributes.pop(KERNEL_VALID, None)
        return
    kernel.attributes[KERNEL_SIZES] = sizes_attribute(sizes)
    kernel.attributes[KERNEL_VALID] = ArrayAttr([valid_attribute(valid, sizes) for valid in shapes])


def valid_inputs(kernel: KernelOp | CallKernelOp) -> tuple[tuple[Size, ...], tuple[ValidShape, ...]]:
    """The sizes of a kernel and what of its inputs is valid; nothing for a kernel of constant shapes."""
    sizes, found = read_sizes(kernel.attributes.get(KERNEL_SIZES)), kernel.attributes.get(KERNEL_VALID)
    if not sizes:
        return (), ()
    if not isa(found, ArrayAttr[ArrayAttr[AffineMapAttr]]) or len(found) != len(kernel.operands):
        raise InvalidStructure(f"{KERNEL_VALID} does not give the factors of each dimension of each input")
    return sizes, tuple(tuple(_dim(map_.data) for map_ in dims) for dims in found)


def _dim_attribute(dim: ValidExtent, sizes: int) -> AffineMapAttr:
    results: list[AffineExpr] = []
    for factor in dim:
        capacity = AffineConstantExpr(factor.capacity)
        results += [capacity if factor.bound is None else factor.bound, capacity]
    return AffineMapAttr(AffineMap(sizes, 0, tuple(results)))


def _dim(map_: AffineMap) -> ValidExtent:
    factors: list[Factor] = []
    for bound, capacity in zip(map_.results[::2], map_.results[1::2], strict=True):
        assert isinstance(capacity, AffineConstantExpr)
        factors.append(Factor(capacity.value, None if bound == capacity else bound))
    return tuple(factors)


def constant_size(constant: Operation) -> AffineExpr | None:
    """The value of a constant over the sizes; None where it does not depend on them."""
    attribute = constant.attributes.get(CONSTANT)
    return attribute.data.results[0] if isinstance(attribute, AffineMapAttr) else None


def depends_on_sizes(op: Operation) -> bool:
    """Whether an operation without operands gives something else at other sizes."""
    return constant_size(op) is not None or VALID in op.attributes


def said_bounds(op: Operation) -> tuple[AffineExpr | None, ...]:
    """The bounds of the result's dimensions that an operation says itself; nothing where it says none."""
    given = op.attributes.get(VALID)
    if given is None or not isa(given, ArrayAttr[AffineMapAttr]):  # `isa` takes its time to refuse
        return ()
    return tuple(_dim(map_.data)[0].bound for map_ in given)
