"""Sizes for the dimensions that a model leaves open: `tensor<?x3xf32>` with `batch = 8` becomes `tensor<8x3xf32>`.

An argument names its open dimensions in `ms.dims = ["batch", ""]`; one without a name is called `input.0` by its
input and its place. `infer-shapes` carries the sizes through the graph.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, ModuleOp, TensorType
from xdsl.ir import Attribute, BlockArgument
from xdsl.rewriter import Rewriter

from msc.dialects.open_sizes import SIZES, named_dims, sizes_attribute
from msc.interp.inputs import arguments, declared, note_sizes
from msc.ir.entry import find_entry
from msc.ir.locations import source_location
from msc.ir.typed import is_tensor
from msc.poly.valid_extents import Size
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError, did_you_mean


def leave_open(module: ModuleOp, ranges: Mapping[str, tuple[int, int]]) -> None:
    """Note that calls decide these sizes of a module whose shapes are those of the largest."""
    if ranges:
        module.attributes[SIZES] = sizes_attribute(Size(name, *between) for name, between in ranges.items())


def sizes_advice(name: str) -> str:
    """How an open dimension gets its size, or a range within which calls decide."""
    return (
        f"give it a size, --dim {name}=8, or a range within which each call decides, --dim {name}=1..64; "
        f'in Python dims={{"{name}": 8}} or dims={{"{name}": (1, 64)}}'
    )


@contextmanager
def sizes_in_mind(open_dims: Mapping[str, tuple[int, int]]) -> Generator[None]:
    """Add to errors about shapes that open dimensions have their largest sizes, where a range is given."""
    try:
        yield
    except MscError as error:
        ends = ", ".join(f"{name}={high} of --dim {name}={low}..{high}" for name, (low, high) in open_dims.items())
        note = f"the sizes are the largest of each range: {ends}"
        if ends and any(found.code in _OF_SHAPES and note not in found.notes for found in error.diagnostics):
            error.diagnostics = tuple(
                replace(found, notes=(*found.notes, note)) if found.code in _OF_SHAPES else found
                for found in error.diagnostics
            )
        raise


_OF_SHAPES = ("MSC0201", "MSC0708", "MSC0507")


def fix_dimensions(
    module: ModuleOp, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]] | None = None
) -> None:
    """Give every open dimension of @main's arguments its size, by its name or as the shape of its input has it.

    Raises MSC0207 for one without, or a name unknown, and MSC0603 for shapes that do not fit.
    """
    entry = find_entry(module)
    tensors = [a for a in arguments(entry) if isinstance(a[0].type, TensorType)] if entry is not None else []
    opened = [(argument, list(open_names(*argument))) for argument in tensors]
    known = {name for _, names in opened for name in names if name}
    unknown = sorted(sizes.keys() - known)
    if unknown:
        help_line = did_you_mean(unknown[0], known) or f"its open dimensions: {', '.join(sorted(known)) or 'none'}"
        raise MscError(Diagnostic("MSC0207", f"the model has no open dimension '{unknown[0]}'", help=help_line))
    every = {**sizes, **_sizes_of(opened, shapes or {}, sizes)}
    for (argument, _), names in opened:
        if any(names):
            _retype(argument, names, every)
    if entry is not None and known:
        outputs = entry.function_type.outputs.data
        entry.function_type = FunctionType.from_lists([a.type for a in entry.args], list(outputs))


def _sizes_of(
    opened: Sequence[tuple[tuple[BlockArgument, Mapping[str, Attribute]], Sequence[str]]],
    shapes: Mapping[str, Sequence[int]],
    sizes: Mapping[str, int],
) -> dict[str, int]:
    """The sizes of open dimensions as the shapes of inputs have them."""
    found: dict[str, int] = dict(sizes)
    for (argument, attributes), names in opened:
        given = shapes.get(declared(argument, attributes).name)
        if given is not None:
            note_sizes(found, declared(argument, attributes).name, names, given)
    return found


def open_names(argument: BlockArgument, attributes: Mapping[str, Attribute]) -> Iterator[str]:
    """The name of each dimension that is open, and "" for each that is not."""
    if not is_tensor(argument.type):
        return
    shape = argument.type.get_shape()
    for position, (size, name) in enumerate(zip(shape, named_dims(attributes, len(shape)), strict=True)):
        yield (name or f"{declared(argument, attributes).name}.{position}") if size == DYNAMIC_INDEX else ""


def _retype(argument: BlockArgument, names: list[str], sizes: Mapping[str, int]) -> None:
    assert is_tensor(argument.type)
    missing = [name for name in names if name and name not in sizes]
    if missing:
        message = f"dimension '{missing[0]}' of an input is open"
        help_line = sizes_advice(missing[0])
        function = argument.owner.parent_op()
        location = None if function is None else source_location(function)
        raise DecidedByCall(Diagnostic("MSC0207", message, location, help=help_line))
    shape = [sizes[name] if name else n for name, n in zip(names, argument.type.get_shape(), strict=True)]
    Rewriter.replace_value_with_new_type(argument, TensorType(argument.type.element_type, shape))
