"""Pass `bind-davinci-kernels`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNEL_FUNCTIONS
from msc.dialects import davinci, gk
from msc.dialects.davinci.attributes import DAVINCI_KERNEL
from msc.dialects.gk.attributes import GK_FUNCTION
from msc.dialects.loop.attributes import LOOP_SCHEDULE
from msc.ir.contracts import Contract


@dataclass(frozen=True)
class BindDavinciKernels(ModulePass):
    """Writes on each function of loops which `davinci.kernel` runs in its place, and removes those that none does.

    The kernels get the names of their functions with `_core` behind them, and stand at the end of the module. Where
    kernels of one function have different schedules, each has its own copy of the function.
    """

    name = "bind-davinci-kernels"
    contract = Contract(requires=(KERNEL_FUNCTIONS,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, FuncOp)}
        written = {k.sym_name.data: k for k in op.body.block.ops if isinstance(k, davinci.DavinciKernelOp)}
        bound: dict[str, davinci.DavinciKernelOp] = {}
        for kernel in kernels_in(op):
            function, name = _named(kernel, GK_FUNCTION), _named(kernel, DAVINCI_KERNEL)
            if function is not None and name in written:
                own = _free_for(written[name], function, functions, bound)
                bound.setdefault(own, written[name])
                kernel.attributes[GK_FUNCTION] = SymbolRefAttr(own)
                if kernel.schedule is not None:
                    functions[own].attributes[LOOP_SCHEDULE] = ArrayAttr(map(StringAttr, kernel.schedule.lines))
        for function, kernel in bound.items():
            copy = kernel.clone()
            copy.sym_name = StringAttr(f"{function}_core")
            functions[function].attributes[DAVINCI_KERNEL] = SymbolRefAttr(copy.sym_name)
            op.body.block.add_op(copy)
        for kernel in written.values():
            kernel.detach()
            kernel.erase()


def _free_for(
    kernel: davinci.DavinciKernelOp,
    function: str,
    functions: dict[str, FuncOp],
    bound: dict[str, davinci.DavinciKernelOp],
) -> str:
    """The name of the function that a kernel runs for: of a copy where another kernel runs for the function itself."""
    name, count = function, 2
    while name in bound and not _are_alike(bound[name], kernel):
        name, count = f"{function}_{count}", count + 1
    if name not in functions:
        copy = functions[function].clone()
        copy.sym_name = StringAttr(name)
        block = functions[function].parent_block()
        assert block is not None
        block.insert_op_after(copy, functions[function])
        functions[name] = copy
    return name


def _are_alike(one: davinci.DavinciKernelOp, other: davinci.DavinciKernelOp) -> bool:
    """Whether two kernels are the same but for their names."""
    if one is other:
        return True
    named = other.clone()
    named.sym_name = one.sym_name
    return named.is_structurally_equivalent(one)


def _named(kernel: gk.KernelOp, attribute: str) -> str | None:
    found = kernel.attributes.get(attribute)
    return found.string_value() if isinstance(found, SymbolRefAttr) else None
