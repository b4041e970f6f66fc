"""Pass `verify-loop-stage`: check that a module is a complete loop-stage program. Changes nothing.

Checked are the closed list of operations (MSC0902), and what the code generator relies on (MSC0404):
- the module holds parameters, kernels' functions and @main; functions return nothing and take buffers of known shape;
- a kernel writes its outputs, temporaries and local arrays, never its inputs;
- a local array (memref.alloca) has a known shape, and those of a function fit on the stack of a thread;
- no parallel loop stands in another; an unrolled loop has a constant number of iterations; no loop is of kind vector,
  as `vectorize` has made vectors of those or, with its reason, ordinary loops;
- @main has inputs, outputs, sizes, at most one workspace and the weights, in this order, and calls kernels of the
  module; a size is an index with a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Attribute, BlockArgument, Operation
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from msc.analysis.bytes import stack_bytes
from msc.dialects import loop
from msc.dialects.open_sizes import argument_sizes
from msc.ir.entry import ENTRY as ENTRY_NAME
from msc.ir.locations import source_location
from msc.lowering.kernel_signature import KernelSignature, kernel_signatures
from msc.lowering.loop_stage_operations import ENTRY, KERNEL, LANES, TOP_LEVEL
from msc.support.diagnostics import Diagnostic, MscError
from msc.targets.cpu import STACK

_ROLES = ("input", "output", "size", "workspace", "weights")


@dataclass(frozen=True)
class VerifyLoopStagePass(ModulePass):
    """Check that a module is a complete loop-stage program."""

    name = "verify-loop-stage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module; all that is wrong is reported at once."""
        found = tuple(loop_stage_diagnostics(op))
        if found:
            raise MscError(*found)


def loop_stage_diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    """Everything in which a module is not a complete loop-stage program."""
    kernels = kernel_signatures(module)
    for op in module.body.block.ops:
        if op.name not in TOP_LEVEL:
            yield _illegal(op.name, op, "directly in the module")
        elif isinstance(op, func.FuncOp) and op.sym_name.data in kernels:
            yield from _check_kernel(op, kernels[op.sym_name.data])
        elif isinstance(op, func.FuncOp) and op.sym_name.data == ENTRY_NAME:
            yield from _check_entry(op, frozenset(kernels))
        elif isinstance(op, func.FuncOp):
            yield _wrong(op, f"@{op.sym_name.data} is neither the entry function nor a kernel's (loop.outputs)")


def _check_kernel(function: func.FuncOp, signature: KernelSignature) -> Iterator[Diagnostic]:
    yield from _check_operations(function, KERNEL, "in a kernel's function")
    yield from _check_arguments(function)
    inputs = function.body.block.args[: signature.inputs]
    for op in _inside(function):
        match op:
            case loop.ForOp():
                yield from _check_loop(op)
            case loop.StoreOp() | memref.StoreOp():
                yield from _check_store(op, inputs)
            case _:
                pass
    yield from _check_stack(function)


def _check_operations(function: func.FuncOp, legal: frozenset[str], place: str) -> Iterator[Diagnostic]:
    for op in _inside(function):
        if op.name not in legal:
            yield _illegal(op.name, op, place)
        elif isinstance(op, loop.LanesOp) and op.operation.data not in LANES:
            yield _illegal(f"loop.lanes {op.operation.data}", op, place)


def _check_arguments(function: func.FuncOp) -> Iterator[Diagnostic]:
    sizes = argument_sizes(function.args, function.arg_attrs)
    for position, type_ in enumerate(function.function_type.inputs):
        if not _is_static_buffer(type_) and not (type_ == IndexType() and function.args[position] in sizes):
            yield _wrong(function, f"argument {position} is no memref of known shape but {type_}")
    if function.function_type.outputs.data:
        yield _wrong(function, f"@{function.sym_name.data} returns values; results are written into buffers")


def _is_static_buffer(type_: Attribute) -> bool:
    return isa(type_, MemRefType[Attribute]) and DYNAMIC_INDEX not in type_.get_shape()


def _check_loop(op: loop.ForOp) -> Iterator[Diagnostic]:
    kind = op.kind.data
    if kind is loop.LoopKind.PARALLEL and any(map(_is_parallel, _around(op))):
        yield _wrong(op, "a parallel loop stands inside another one")
    if kind is loop.LoopKind.UNROLL and op.constant_range is None:
        yield _wrong(op, "an unrolled loop has no constant number of iterations")
    if kind is loop.LoopKind.VECTOR:
        yield _wrong(op, "a loop of kind vector is left; vectorize comes before")


def _around(op: Operation) -> Iterator[Operation]:
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


def _is_parallel(op: Operation) -> bool:
    return isinstance(op, loop.ForOp) and op.kind.data is loop.LoopKind.PARALLEL


def _check_store(op: loop.StoreOp | memref.StoreOp, inputs: Sequence[BlockArgument]) -> Iterator[Diagnostic]:
    target = op.target if isinstance(op, loop.StoreOp) else op.memref
    if isinstance(target, BlockArgument) and target in inputs:
        yield _wrong(op, f"argument {target.index} is an input, but is written")


def _check_stack(function: func.FuncOp) -> Iterator[Diagnostic]:
    arrays = [op for op in _inside(function) if isinstance(op, memref.AllocaOp)]
    for op in arrays:
        if not _is_static_buffer(op.memref.type):
            yield _wrong(op, "a local array has no known shape")
            return
    total = stack_bytes(function)
    if total > STACK:
        yield _wrong(function, f"the local arrays take {total} bytes; at most {STACK} fit on a stack")


def _check_entry(function: func.FuncOp, kernels: frozenset[str]) -> Iterator[Diagnostic]:
    yield from _check_operations(function, ENTRY, "in the entry function")
    yield from _check_arguments(function)
    yield from _check_roles(function)
    for op in _inside(function):
        if isinstance(op, func.CallOp) and op.callee.string_value() not in kernels:
            yield _wrong(op, f"@{op.callee.string_value()} is no kernel's function of this module")


def _check_roles(function: func.FuncOp) -> Iterator[Diagnostic]:
    """An argument without a role is an input; a program without intermediates needs no workspace."""
    given = [a.data.get("ms.role", StringAttr("input")) for a in function.arg_attrs or ()]
    places = [_ROLES.index(role.data) for role in given if isinstance(role, StringAttr) and role.data in _ROLES]
    single = all(places.count(_ROLES.index(role)) <= 1 for role in ("workspace", "weights"))
    if len(places) != len(given) or places != sorted(places) or not single:
        yield _wrong(
            function,
            "the arguments' ms.role are not inputs, outputs, sizes, a workspace and the weights, in this order",
        )


def _inside(function: func.FuncOp) -> Iterator[Operation]:
    return (op for op in function.walk() if op is not function)


def _illegal(name: str, op: Operation, place: str) -> Diagnostic:
    return Diagnostic("MSC0902", f"'{name}' is not an operation of the loop stage {place}", source_location(op))


def _wrong(op: Operation, message: str) -> Diagnostic:
    return Diagnostic("MSC0404", f"{VerifyLoopStagePass.name}: {message}", source_location(op))
