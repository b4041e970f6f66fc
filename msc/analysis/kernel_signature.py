"""What a kernel's function takes: inputs, outputs, temporaries; and which outputs may overwrite which inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, ModuleOp, i64
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from msc.dialects.loop.attributes import LOOP_CALLS, LOOP_IN_PLACE, LOOP_OUTPUTS, LOOP_TEMPORARIES
from msc.dialects.open_sizes import argument_sizes
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class KernelSignature:
    """How the arguments of a kernel's function divide; `loop.in_place` holds pairs (output, input), each from zero.

    `types` are those of the buffers; after them come the `sizes` that the call decides, by name.
    """

    types: tuple[Attribute, ...]
    outputs: int
    temporaries: int
    in_place: frozenset[tuple[int, int]] = frozenset()
    sizes: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        """Number of arguments that are only read; they come first."""
        return len(self.types) - self.outputs - self.temporaries

    @property
    def output_range(self) -> range:
        """Argument positions of the outputs."""
        return range(self.inputs, self.inputs + self.outputs)

    @property
    def written_range(self) -> range:
        """Argument positions that the function writes: outputs and temporaries."""
        return range(self.inputs, len(self.types))

    @property
    def temporary_types(self) -> tuple[Attribute, ...]:
        """Types of the scratch buffers that the caller provides."""
        return self.types[self.inputs + self.outputs :]

    @classmethod
    def of(cls, function: func.FuncOp) -> KernelSignature:
        """Read the signature from a function's attributes."""
        sizes = tuple(s.name for s in argument_sizes(function.args, function.arg_attrs).values())
        types = tuple(function.function_type.inputs.data)[: len(function.args) - len(sizes)]
        counts = _count(function, LOOP_OUTPUTS), _count(function, LOOP_TEMPORARIES)
        return cls(types, *counts, frozenset(argument_pairs(function.attributes.get(LOOP_IN_PLACE))), sizes)


def kernel_signatures(module: ModuleOp) -> Mapping[str, KernelSignature]:
    """The kernels' functions of a module, by name: those that say how many outputs they have."""
    functions = (op for op in module.body.block.ops if isinstance(op, func.FuncOp) and LOOP_OUTPUTS in op.attributes)
    return {function.sym_name.data: KernelSignature.of(function) for function in functions}


def calls_of(function: func.FuncOp) -> int:
    """How many calls of kernels a function stands for; 1 where it is a kernel's own."""
    count = function.attributes.get(LOOP_CALLS)
    return count.value.data if isa(count, IntegerAttr) else 1


def argument_pairs(attribute: Attribute | None) -> list[tuple[int, int]]:
    """The pairs in `[array<i64: 0, 1>, ...]`, the value of `loop.in_place`."""
    if not isa(attribute, ArrayAttr[DenseArrayBase[IntegerType]]):
        return []
    rows = [list(row.get_values()) for row in attribute]
    return [(row[0], row[1]) for row in rows if len(row) == 2]


def _count(function: func.FuncOp, name: str) -> int:
    attribute = function.attributes.get(name, IntegerAttr(0, i64))
    if isa(attribute, IntegerAttr):
        return attribute.value.data
    message = f"attribute {name} of @{function.sym_name.data} is not an integer"
    raise MscError(Diagnostic("MSC0404", message, source_location(function)))
