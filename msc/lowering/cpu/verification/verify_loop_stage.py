"""Pass `verify-loop-stage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from msc.analysis.bytes import stack_bytes
from msc.analysis.kernel_signature import KernelSignature, kernel_signatures
from msc.analysis.target import target_of
from msc.dialects import loop
from msc.dialects.open_sizes import argument_sizes
from msc.ir.entry import RunsOnOtherCores, is_entry
from msc.ir.locations import source_location
from msc.lowering.cpu.verification.entry_checks import (
    EntryArguments,
    argument_faults,
    asked_sizes,
    operation_faults,
    parameter_faults,
    weights_bytes,
)
from msc.lowering.cpu.verification.loop_stage_types import is_buffer, mistyped_values
from msc.poly.scalar import OPERATORS
from msc.support.diagnostics import Diagnostic, first_of_each, raise_any

_ARITH = (
    "index_cast fptosi fptoui sitofp uitofp extf truncf trunci extsi extui bitcast floordivsi ceildivsi constant cmpf"
    " cmpi select"
)
_MATH = "absi copysign fma log10 round"
_LANES = "cmpf cmpi select remf sitofp uitofp fptosi fptoui extsi extui trunci extf truncf bitcast"
_VECTOR = "broadcast reduction"


def _names(dialect: str, mnemonics: str) -> frozenset[str]:
    return frozenset(f"{dialect}.{mnemonic}" for mnemonic in mnemonics.split())


SCALARS = (
    frozenset(name for operator in OPERATORS.values() for name in (operator.mlir, *operator.integers) if name)
    - {"arith.remf"}
    | _names("arith", _ARITH)
    | _names("math", _MATH)
)
"""Computation on scalars and, lane by lane, on vectors."""

LANES = _names("arith", _LANES) | _names("math", "copysign") | _names("loop", "dot_bytes")
"""What `loop.lanes` may stand for: operations that xDSL lacks, or does not take on vectors."""

KERNEL = (
    SCALARS
    | _names("vector", _VECTOR)
    | _names("memref", "alloca load store")
    | _names("loop", "for load store prefetch apply lanes add_products call")
    | _names("func", "return")
)
"""In the function of a kernel."""

ENTRY = (
    SCALARS
    | _names("memref", "view reinterpret_cast copy load store")
    | _names("loop", "slice")
    | _names("scf", "if for while yield condition")
    | _names("func", "call return")
)
"""In the entry function, planned."""

TOP_LEVEL = _names("ms", "parameter") | _names("func", "func")
"""Directly in the module. What stands in a parameter's region is evaluated at compile time and is not of this stage."""


@dataclass(frozen=True)
class VerifyLoopStage(ModulePass):
    """Check that a module is a complete loop-stage program. Changes nothing.

    Checked are the closed list of operations (MSC0209), and what the code generator relies on (MSC0404):
    - the module holds parameters, kernels' functions and entry functions; functions return nothing and take buffers
      of known shape;
    - values are scalars, vectors of them, and buffers whose elements lie in order;
    - a kernel writes its outputs, temporaries and local arrays, never its inputs;
    - a local array (memref.alloca) has a known shape, and those of a function fit on the stack of a thread;
    - no parallel loop stands in another; an unrolled loop has a constant number of iterations; no loop is of kind
      vector, as `vectorize` has made vectors of those or, with its reason, ordinary loops;
    - an entry function has inputs (of which it updates states), outputs, sizes, at most one workspace and the
      weights, in this order, and calls kernels of the module; a size is an index with a range, inside that of each
      kernel that is given it;
    - a view shows bytes of the workspace or of the weights, a cast all elements of a buffer in another shape;
      parameters lie inside the weights, apart.
    """

    name = "verify-loop-stage"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Check the module; all that is wrong is reported at once, each mistake with the number of its operations."""
        raise_any(first_of_each(loop_stage_diagnostics(op), lambda diagnostic: diagnostic.message))


def loop_stage_diagnostics(module: ModuleOp) -> Iterator[Diagnostic]:
    """Everything in which a module is not a complete loop-stage program."""
    kernels = kernel_signatures(module)
    for op in module.body.block.ops:
        if op.has_trait(RunsOnOtherCores):
            continue
        if op.name not in TOP_LEVEL:
            yield _illegal(op.name, op, "directly in the module")
        elif isinstance(op, func.FuncOp):
            yield from _check_function(op, module, kernels)


def _check_function(
    function: func.FuncOp, module: ModuleOp, kernels: Mapping[str, KernelSignature]
) -> Iterator[Diagnostic]:
    name = function.sym_name.data
    if len(function.body.blocks) != 1:
        yield _wrong(function, f"@{name} has not one block")
        return
    legal, place = (ENTRY, "in an entry function") if is_entry(function) else (KERNEL, "in a kernel's function")
    yield from _check_operations(function, legal, place)
    yield from _check_arguments(function)
    yield from _check_values(function, legal)
    if is_entry(function):
        yield from _check_entry(function, module, kernels)
    elif name in kernels:
        yield from _check_kernel(function, kernels[name])
    else:
        yield _wrong(function, f"@{name} is neither an entry function nor a kernel's (loop.outputs)")


def _check_values(function: func.FuncOp, legal: frozenset[str]) -> Iterator[Diagnostic]:
    for op, value in mistyped_values(function):
        if op.name in legal:
            yield _wrong(op, f"'{op.name}' has a value of type {value.type}, which the loop stage lacks")


def _check_kernel(function: func.FuncOp, signature: KernelSignature) -> Iterator[Diagnostic]:
    if min(signature.outputs, signature.temporaries, signature.inputs) < 0:
        counts = f"{signature.outputs} outputs and {signature.temporaries} temporaries"
        yield _wrong(function, f"@{function.sym_name.data} has {len(signature.types)} buffers, which are not {counts}")
        return
    inputs = function.body.block.args[: signature.inputs]
    for op in _inside(function):
        match op:
            case loop.ForOp():
                yield from _check_loop(op)
            case loop.StoreOp():
                yield from _check_written(op, [op.target], inputs)
            case memref.StoreOp():
                yield from _check_written(op, [op.memref], inputs)
            case loop.CallRowsOp():
                yield from _check_written(op, op.written, inputs)
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
    """Buffers of known shape, and sizes, which come after those in a kernel."""
    sizes = argument_sizes(function.args, function.arg_attrs)
    for position, type_ in enumerate(function.function_type.inputs):
        if not is_buffer(type_) and not (type_ == IndexType() and function.args[position] in sizes):
            yield _wrong(function, f"argument {position} is no memref of known shape but {type_}")
    last = function.args[len(function.args) - len(sizes) :]
    if not is_entry(function) and any(argument not in sizes for argument in last):
        yield _wrong(function, "the sizes are not the last arguments")
    if function.function_type.outputs.data:
        yield _wrong(function, f"@{function.sym_name.data} returns values; results are written into buffers")


def _check_loop(op: loop.ForOp) -> Iterator[Diagnostic]:
    kind = op.kind.data
    if kind is loop.LoopKind.PARALLEL and any(map(_is_parallel, _around(op))):
        yield _wrong(op, "a parallel loop is inside another one")
    if kind is loop.LoopKind.UNROLL and op.constant_range is None:
        yield _wrong(op, "an unrolled loop has no constant number of iterations")
    if kind is loop.LoopKind.VECTOR:
        yield _wrong(op, "a vector loop remains; run vectorize first")


def _around(op: Operation) -> Iterator[Operation]:
    while (parent := op.parent_op()) is not None:
        yield parent
        op = parent


def _is_parallel(op: Operation) -> bool:
    return isinstance(op, loop.ForOp) and op.kind.data is loop.LoopKind.PARALLEL


def _check_written(op: Operation, targets: Sequence[SSAValue], inputs: Sequence[BlockArgument]) -> Iterator[Diagnostic]:
    for target in targets:
        if isinstance(target, BlockArgument) and target in inputs:
            yield _wrong(op, f"argument {target.index} is an input, but is written")


def _check_stack(function: func.FuncOp) -> Iterator[Diagnostic]:
    arrays = [op.memref for op in _inside(function) if isinstance(op, memref.AllocaOp)]
    total = stack_bytes(function) if all(is_buffer(array.type) for array in arrays) else 0
    if total > (most := target_of(function).machine.stack):
        yield _wrong(function, f"the local arrays take {total} bytes; at most {most} fit on a stack")


def _check_entry(
    function: func.FuncOp, module: ModuleOp, kernels: Mapping[str, KernelSignature]
) -> Iterator[Diagnostic]:
    yield from (_wrong(op, message) for op, message in argument_faults(function))
    asked = {name: asked_sizes(kernel) for name, kernel in _functions(module).items()}
    own = EntryArguments(function)
    for op in _inside(function):
        if isinstance(op, func.CallOp) and op.callee.string_value() not in kernels:
            yield _wrong(op, f"@{op.callee.string_value()} is no kernel's function of this module")
            continue
        yield from (_wrong(at, message) for at, message in operation_faults(op, asked, own))
    yield from (_wrong(op, message) for op, message in parameter_faults(module, weights_bytes(function)))


def _functions(module: ModuleOp) -> Mapping[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp)}


def _inside(function: func.FuncOp) -> Iterator[Operation]:
    return (op for op in function.walk() if op is not function)


def _illegal(name: str, op: Operation, place: str) -> Diagnostic:
    return Diagnostic("MSC0209", f"'{name}' is not an operation of the loop stage {place}", source_location(op))


def _wrong(op: Operation, message: str) -> Diagnostic:
    return Diagnostic("MSC0404", f"{VerifyLoopStage.name}: {message}", source_location(op))
