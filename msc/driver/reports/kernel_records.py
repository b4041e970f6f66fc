"""What every kernel of a graph takes and gives on some inputs, by the interpreter; kernels alone are tested on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation, SSAValue

from msc.analysis.kernel_signature import KernelSignature
from msc.dialects.arrays import Array, element_dtype
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_FUNCTION
from msc.dialects.open_sizes import argument_sizes
from msc.driver.models.entry import entry_function
from msc.interp import LoopProgram, WeightSource, evaluate
from msc.interp.inputs import arguments, declared
from msc.interp.loop_memory import fresh
from msc.ir.typed import memref_type
from msc.runtime.program import ALIGNMENT


@dataclass(frozen=True)
class KernelRecord:
    """One execution of a kernel: the function that was made of it, its inputs and the outputs that are right."""

    function: str
    label: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]


def record_kernels(
    module: ModuleOp, inputs: Sequence[Array], weights: WeightSource, entry: str | None = None
) -> tuple[KernelRecord, ...]:
    """One record a function, of a module whose kernels name their functions; those inside branches are left out."""
    found = zip(arguments(entry_function(module, entry)), inputs, strict=True)
    values: dict[SSAValue, Array] = {argument[0]: declared(*argument).inside(array) for argument, array in found}
    records = dict[str, KernelRecord]()

    def observe(op: Operation, results: tuple[Array, ...]) -> None:
        values.update(zip(op.results, results, strict=True))
        name = op.attributes.get(GK_FUNCTION)
        if isinstance(op, KernelOp) and isinstance(name, SymbolRefAttr) and all(v in values for v in op.inputs):
            given = tuple(values[v] for v in op.inputs)
            symbol = name.string_value()
            records.setdefault(symbol, KernelRecord(symbol, op.label.data, given, results))

    evaluate(module, inputs, weights, observer=observe, entry=entry)
    return tuple(records.values())


def kernel_function(module: ModuleOp, name: str) -> func.FuncOp | None:
    """The function of a kernel, if the module has it."""
    functions = (op for op in module.ops if isinstance(op, func.FuncOp))
    return next((op for op in functions if op.sym_name.data == name), None)


def takes(function: func.FuncOp | None, record: KernelRecord) -> bool:
    """Whether a function, which someone may have edited, still takes and gives what the kernel does."""
    if function is None:
        return False
    signature = KernelSignature.of(function)
    types = [memref_type(t) for t in signature.types]
    elements = [t.element_count() for t in types[: signature.inputs + signature.outputs]]
    return elements == [array.size for array in (*record.inputs, *record.outputs)]


def run_kernel(
    module: ModuleOp, record: KernelRecord, call: Callable[[Sequence[Array], Sequence[int]], None] | None = None
) -> tuple[Array, ...]:
    """The outputs of a kernel's function on a record's inputs: by the loop-stage interpreter, or by `call`.

    The function's buffers may have fewer dimensions than the kernel's tensors, of the same elements.
    """
    function = kernel_function(module, record.function)
    assert function is not None, record.function
    signature = KernelSignature.of(function)
    types = [memref_type(t) for t in signature.types]
    buffers = [fresh(t.get_shape(), element_dtype(t.element_type)) for t in types[signature.inputs :]]
    given = [_plain(a).reshape(t.get_shape()) for a, t in zip(record.inputs, types, strict=False)]
    arrays = [*given, *(aligned(b) for b in buffers)]
    sizes = [size.high for size in argument_sizes(function.args, function.arg_attrs).values()]
    if call is None:
        LoopProgram(module).run(record.function, *arrays, *sizes)
    else:
        call(arrays, sizes)
    written = [arrays[position] for position in signature.output_range]
    return tuple(a.view(e.dtype).reshape(e.shape) for a, e in zip(written, record.outputs, strict=True))


def _plain(array: Array) -> Array:
    """An aligned copy whose integers have no sign, as in buffers."""
    kind = array.dtype.kind
    return aligned(array.view(f"i{array.dtype.itemsize}") if kind == "u" else array)


def aligned(array: Array) -> Array:
    """A copy that starts where a vector register may be loaded."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def c_names(module: ModuleOp, calls: Sequence[str]) -> dict[str, str]:
    """The C name of every kernel's function: `calls` are those of a C program, in the order of the entry's calls."""
    ops = [op for op in entry_function(module).walk() if isinstance(op, func.CallOp | memref.CopyOp)]
    return {op.callee.string_value(): name for op, name in zip(ops, calls, strict=True) if isinstance(op, func.CallOp)}


def kernel_caller(library: ctypes.CDLL, name: str) -> Callable[[Sequence[Array], Sequence[int]], None]:
    """A kernel's C function, exported by that name, as `run_kernel` calls it."""
    function = library[name]
    function.restype = None

    def call(arrays: Sequence[Array], sizes: Sequence[int]) -> None:
        function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), *map(ctypes.c_int64, sizes))

    return call
