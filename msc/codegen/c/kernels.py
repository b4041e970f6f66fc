"""Kernel functions as C: a comment on where they come from, a prototype that says who aliases whom, and the body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast as typed

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from msc.analysis.bytes import stack_bytes
from msc.codegen.c.affine import INDEX, IndexExpression, affine_index
from msc.codegen.c.body import FunctionEmitter
from msc.codegen.c.dead_code import dead_values, named_values
from msc.codegen.c.fixed_point import taken_in
from msc.codegen.c.lines import wrap_prototype
from msc.codegen.c.names import NameScope
from msc.codegen.c.prelude import Prelude
from msc.codegen.c.shared_loops import Capture, LoopPart, scalar
from msc.codegen.c.types import INDEX_TYPE, CArrayType, buffer_type, memory_name
from msc.codegen.c.values import CExpression, Precedence
from msc.dialects.loop.attributes import LOOP_ORIGIN, LOOP_OUTPUTS, LOOP_REASONS, LOOP_SCHEDULE, LOOP_TEMPORARIES
from msc.dialects.open_sizes import argument_sizes, compact_extents
from msc.support.escaping import c_comment

_MAXIMUM_COMMENT_LINES = 200
"""Of a schedule."""
_STACK_OF_TILES = 4096
"""Bytes of local arrays that are register tiles, of which a comment need not speak."""


@dataclass(frozen=True)
class BufferParameter:
    """A buffer that a kernel takes; a `written` one is an output or scratch, an `aliased` one may overlap another."""

    name: str
    buffer: CArrayType
    written: bool
    aliased: bool

    @property
    def declaration(self) -> str:
        """As it stands in the prototype."""
        declarator = self.buffer.declarator(self.name, "" if self.aliased else "restrict")
        return f"{'' if self.written else 'const '}{memory_name(self.buffer.base)} {declarator}"

    @property
    def first_element(self) -> str:
        """A pointer to it."""
        return self.name + "[0]" * (len(self.buffer.shape) - 1)


@dataclass(frozen=True)
class Kernel:
    """A kernel function's C name and parameters; after the buffers it takes `sizes`, 64-bit integers.

    Before it stand `opening`, which says where it comes from, and `parts` of its loops. A kernel whose body calls a
    `merged` function stands behind that.
    """

    name: str
    parameters: tuple[BufferParameter, ...]
    sizes: tuple[str, ...]
    opening: str
    body: str
    parts: tuple[LoopPart, ...] = ()
    merged: Kernel | None = None

    @property
    def declarations(self) -> list[str]:
        return [*(p.declaration for p in self.parameters), *(f"{INDEX_TYPE} {name}" for name in self.sizes)]

    @property
    def prototype(self) -> str:
        return f"void {self.name}({', '.join(self.declarations)})"

    def text(self, linkage: str = "") -> str:
        """The definition; `linkage` is `static ` or nothing."""
        head = wrap_prototype(f"{linkage}void {self.name}(", self.declarations)
        return f"{self.opening}{''.join(part.text() for part in self.parts)}{head}\n{{\n{self.body}}}\n"


def kernel_texts(kernels: Iterable[Kernel], linkage: str = "") -> list[str]:
    """The definitions, those of kernels that call the same function together with it."""
    texts: dict[str, list[str]] = {}
    for kernel in kernels:
        merged = kernel.merged
        opening = [merged.text("static MSC_MERGED ")] if merged is not None else []
        texts.setdefault(kernel.name if merged is None else merged.name, opening).append(kernel.text(linkage))
    return ["\n".join(text) for text in texts.values()]


def emit_kernel(
    function: FuncOp,
    functions: NameScope,
    aliased: frozenset[int],
    prelude: Prelude,
    given: frozenset[int] = frozenset(),
) -> Kernel:
    """The C of one kernel; `aliased` are the positions of parameters that overlap others in some call.

    Those `given` are tensors of the caller, which begin anywhere.
    """
    name = functions.fresh(function.sym_name.data, "kernel")
    dead = dead_values(function).union(taken_in(function))
    body = FunctionEmitter(prelude, dead=dead, name=name, functions=functions)
    parameters = _parameters(function, body.scope, aliased)
    sizes = argument_sizes(function.args, function.arg_attrs)
    names = {a: body.scope.fresh(size.name, "n") for a, size in sizes.items()}
    for number, extents in compact_extents(function.arg_attrs):
        buffer = replace(
            parameters[number].buffer,
            open_strides=tuple(_strides(extents.results, list(names.values()), prelude.plain)),
        )
        parameters[number] = replace(parameters[number], buffer=buffer)
        body.stride_sizes[function.args[number]] = list(sizes)
    body.unaligned = {function.args[k] for k in given}
    for argument, parameter in zip(function.args, parameters, strict=False):
        body.bind_parameter(argument, parameter.name, parameter.buffer, aliased=parameter.aliased)
        body.around[argument] = Capture(parameter.name, parameter.declaration)
    for argument, size in sizes.items():
        body.bind_size(argument, names[argument], size.low, size.high)
        body.around[argument] = scalar(names[argument], INDEX_TYPE)
    body.block(function.body.block)
    named = named_values(function.body.block.ops, body.dead)
    unused = "".join(f"    (void){body.around[a].name};\n" for a in function.args if a not in named)
    text = unused + body.lines.text()
    return Kernel(name, tuple(parameters), tuple(names.values()), _comment(function), text, tuple(body.parts))


def emit_caller(
    function: FuncOp, functions: NameScope, aliased: frozenset[int], merged: Kernel, sizes: Sequence[int]
) -> Kernel:
    """The C of a kernel that calls the function of several, with its `sizes`."""
    parameters = _parameters(function, NameScope(), aliased)
    pairs = zip(parameters, merged.parameters, strict=True)
    buffers = [p.first_element if taken.buffer.open_strides else p.name for p, taken in pairs]
    call = wrap_prototype(f"    {merged.name}(", (*buffers, *map(str, sizes)), ");\n")
    name = functions.fresh(function.sym_name.data, "kernel")
    return Kernel(name, tuple(parameters), (), _comment(function), call, merged=merged)


def _parameters(function: FuncOp, scope: NameScope, aliased: frozenset[int]) -> list[BufferParameter]:
    sizes = argument_sizes(function.args, function.arg_attrs)
    arguments = [a for a in function.args if a not in sizes]
    outputs, temporaries = (_count(function, name) for name in (LOOP_OUTPUTS, LOOP_TEMPORARIES))
    first_written = len(arguments) - outputs - temporaries
    hints = ["x"] * first_written + ["y"] * outputs + ["t"] * temporaries
    return [
        BufferParameter(scope.fresh(a.name_hint or hint, hint), buffer_type(a.type), hint != "x", position in aliased)
        for position, (a, hint) in enumerate(zip(arguments, hints, strict=True))
    ]


def _strides(extents: Sequence[AffineExpr], names: Sequence[str], plain: set[str]) -> list[str]:
    """Elements between neighbours along each dimension of a buffer that lies like any array, as factors in C."""
    dims = [IndexExpression(CExpression(name, INDEX)) for name in names]
    strides, number, factors = list[str](), 1, list[str]()
    for extent in reversed(extents):
        strides.append(" * ".join([*([str(number)] if number != 1 or not factors else []), *factors]))
        if isinstance(extent, AffineConstantExpr):
            number *= max(extent.value, 1)
        else:
            factors = [affine_index(extent, dims, plain).value.at(Precedence.UNARY), *factors]
    return strides[::-1]


def _count(function: FuncOp, name: str) -> int:
    attribute = function.attributes.get(name)
    return typed(IntegerAttr, attribute).value.data if isinstance(attribute, IntegerAttr) else 0


def _comment(function: FuncOp) -> str:
    lines = _strings(function.attributes.get(LOOP_ORIGIN))
    schedule = _strings(function.attributes.get(LOOP_SCHEDULE))
    if schedule:
        lines += ["schedule:", *(f"  {line}" for line in schedule)][:_MAXIMUM_COMMENT_LINES]
    lines += _strings(function.attributes.get(LOOP_REASONS))
    if (stack := stack_bytes(function)) > _STACK_OF_TILES:
        lines.append(f"stack: {stack} bytes at most")
    return f"{c_comment(*lines)}\n" if lines else ""


def _strings(attribute: Attribute | None) -> list[str]:
    if not isinstance(attribute, ArrayAttr):
        return []
    items = typed(ArrayAttr[Attribute], attribute)
    return [item.data for item in items if isinstance(item, StringAttr)]
