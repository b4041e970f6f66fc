"""Pass `convert-gk-to-loop`: a function of loops over buffers for every kernel.

Takes `gk.kernel`s with a schedule (`schedule-kernels`). isl turns each schedule tree into a loop nest, which becomes a
`func.func` of memrefs: inputs, outputs, temporaries. Kernels with the same function share one; `gk.function` on the
kernel names it. The kernels stay in place for `bufferize`, which replaces them by calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, i64
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from msc.analysis.kernel_model import kernel_model, output_positions, statement_operations
from msc.dialects import gk
from msc.ir.locations import source_location
from msc.lowering.kernel_function import KernelFunction
from msc.lowering.kernel_signature import IN_PLACE, OUTPUTS, TEMPORARIES
from msc.poly.dependences import dependences
from msc.poly.nest import generate
from msc.poly.overwriting import may_overwrite
from msc.poly.plan import Plan, from_lines
from msc.poly.tree import schedule_tree
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class ConvertGkToLoop(ModulePass):
    """A function of loops over buffers for every kernel."""

    name = "convert-gk-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions: dict[str, func.FuncOp] = {}
        for kernel in [k for k in op.walk() if isinstance(k, gk.KernelOp)]:
            function = _function(kernel)
            key = str(function)
            if key not in functions:
                function.sym_name = StringAttr(f"k{len(functions)}_{kernel.label.data}")
                function.attributes["loop.schedule"] = kernel.attributes["gk.schedule"]
                functions[key] = function
                _place(op, function)
            shared = functions[key]
            _add_origins(shared, kernel)
            kernel.attributes["gk.function"] = SymbolRefAttr(shared.sym_name.data)


def _add_origins(function: func.FuncOp, kernel: gk.KernelOp) -> None:
    """Append where the kernel's operations come from to those that the function already serves."""
    known = function.attributes.get("loop.origin")
    before = [o.data for o in known] if isa(known, ArrayAttr[StringAttr]) else []
    origins = [*before, *(o for o in kernel_model(kernel).operations if o not in before)]
    function.attributes["loop.origin"] = ArrayAttr([StringAttr(o) for o in origins])


def _place(module: ModuleOp, function: func.FuncOp) -> None:
    first = next(f for f in module.body.block.ops if isinstance(f, func.FuncOp))
    entry = next((f for f in module.body.block.ops if isinstance(f, func.FuncOp) and f.sym_name.data == "main"), first)
    module.body.block.insert_op_before(function, entry)


def _plan(kernel: gk.KernelOp) -> Plan:
    lines = kernel.attributes.get("gk.schedule")
    if not isa(lines, ArrayAttr[StringAttr]):
        message = f"kernel {kernel.label.data!r} has no schedule"
        raise MscError(Diagnostic("MSC0404", message, source_location(kernel), help="run schedule-kernels first"))
    return from_lines([line.data for line in lines])


def _function(kernel: gk.KernelOp) -> func.FuncOp:
    model = kernel_model(kernel)
    plan = _plan(kernel)
    schedule = schedule_tree(model, dependences(model), plan)
    inputs = [i for i, a in enumerate(model.arrays) if a.kind == "input"]
    outputs = list(output_positions(kernel))
    locations = [op.location for op in statement_operations(kernel)]
    function = KernelFunction(model, generate(schedule), inputs, outputs, locations).build()
    temporaries = len(function.function_type.inputs) - len(inputs) - len(outputs)
    function.attributes[OUTPUTS] = IntegerAttr(len(outputs), i64)
    function.attributes[TEMPORARIES] = IntegerAttr(temporaries, i64)
    pairs = [
        DenseArrayBase.from_list(i64, [o, i])
        for o, output in enumerate(outputs)
        for i, source in enumerate(inputs)
        if may_overwrite(model, plan, schedule, source, output)
    ]
    if pairs:
        function.attributes[IN_PLACE] = ArrayAttr(pairs)
    return function
