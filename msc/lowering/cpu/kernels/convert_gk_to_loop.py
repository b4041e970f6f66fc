"""Pass `convert-gk-to-loop`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from msc.analysis.bytes import byte_size
from msc.analysis.kernel_model import kernel_model, origin, output_positions, statement_operations
from msc.analysis.properties import KERNEL_FUNCTIONS, KERNELS, SCHEDULED, VECTORS
from msc.analysis.target import target_of
from msc.cost.prediction import predict
from msc.dialects import gk, loop
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_FUNCTION
from msc.dialects.loop.attributes import (
    LOOP_CYCLES,
    LOOP_IN_PLACE,
    LOOP_ORIGIN,
    LOOP_OUTPUTS,
    LOOP_SCHEDULE,
    LOOP_TEMPORARIES,
)
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.dialects.open_sizes import size_attributes, valid_inputs
from msc.ir.contracts import Contract
from msc.ir.entry import entries
from msc.ir.locations import source_location
from msc.ir.typed import static_shape, tensor_type
from msc.lowering.cpu.buffer_types import buffer_type, contiguous
from msc.lowering.cpu.kernels.kernel_function import KernelFunction
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.overwriting import may_overwrite
from msc.poly.requests import requests
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.parts import tile_counts
from msc.poly.schedule_tree.text import to_lines
from msc.poly.storage import storage
from msc.poly.valid_extents import upper_bound, whole
from msc.schedule.schedule_kernels import check_given, is_chosen
from msc.schedule.strategy import plain
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.naming import valid_hint
from msc.targets.machine import Machine


@dataclass(frozen=True)
class ConvertGkToLoop(ModulePass):
    """A function of loops over buffers for every kernel, and every `gk.call`.

    Takes `gk.kernel`s with a schedule (`schedule-kernels`). isl turns each schedule tree into a loop nest, which
    becomes a `func.func` of memrefs: inputs, outputs, temporaries; arrays live where the schedule places them. Kernels
    with the same function share one; `gk.function` on the kernel names it. Of those in loops that threads may share
    `loop.cycles` says what the cost model predicts. The kernels stay in place for `bufferize`,
    which replaces them by calls. Raises MSC0404 for a kernel without a schedule, and MSC0408 for a schedule that a
    person wrote and that is none for its kernel, or breaks a dependence.

    With `plain=true` functions only say what kernels mean that run elsewhere by their schedules: statements run one
    after the other, each in its own loops.
    """

    name = "convert-gk-to-loop"
    contract = Contract(requires=(KERNELS, SCHEDULED), ensures=(KERNEL_FUNCTIONS,), breaks=(VECTORS,))
    plain: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = _Functions(op, self.plain)
        for found in [k for k in op.walk() if isinstance(k, gk.KernelOp | gk.CallKernelOp)]:
            function = functions.of(found) if isinstance(found, gk.KernelOp) else functions.of_call(found)
            found.attributes[GK_FUNCTION] = SymbolRefAttr(function.sym_name.data)
        functions.note_kernels()


class _Functions:
    """The functions of a module's kernels: one for all that compute the same, or whose loops come out the same."""

    def __init__(self, module: ModuleOp, is_plain: bool) -> None:
        self._module = module
        self._is_plain = is_plain
        self._machine = target_of(module).machine
        self._before = next(iter(entries(module)), None)
        self._by_structure: dict[tuple[str, tuple[str, ...], tuple[int, ...]], func.FuncOp] = {}
        self._alike: dict[tuple[object, ...], list[func.FuncOp]] = {}
        self._bodies: dict[func.FuncOp, str] = {}
        self._count = 0
        self._origins: dict[func.FuncOp, dict[str, None]] = {}
        self._argument_names = ArgumentNames(module)
        self._names: dict[func.FuncOp, list[tuple[str | None, ...]]] = {}

    def of(self, kernel: gk.KernelOp) -> func.FuncOp:
        """The kernel's function, placed in the module."""
        model, outputs = kernel_model(kernel), output_positions(kernel)
        key = (model.structure, () if self._is_plain else tuple(_schedule(kernel).lines), outputs)
        if key not in self._by_structure:
            tree = self._tree(kernel, model)
            function = _function(kernel, model, outputs, tree, self._machine)
            self._by_structure[key] = self._same_or_new(function, kernel.label.data, tree)
        function = self._by_structure[key]
        self._origins.setdefault(function, {}).update(dict.fromkeys(model.operations))
        self._names.setdefault(function, []).append(self._argument_names.of(kernel))
        if LOOP_CYCLES not in function.attributes and not self._is_plain and _is_in_shared_loop(kernel):
            cycles = predict(model, _schedule(kernel).data, target_of(kernel).machine, 1).cycles
            function.attributes[LOOP_CYCLES] = IntegerAttr(round(cycles), i64)
        return function

    def _tree(self, kernel: gk.KernelOp, model: KernelModel) -> Tree:
        """The tree whose loops a kernel becomes."""
        if self._is_plain:
            return plain(model, dependences(model), self._machine)
        if not is_chosen(kernel):
            check_given(kernel)
        return _schedule(kernel).data

    def _same_or_new(self, function: func.FuncOp, label: str, tree: Tree) -> func.FuncOp:
        """The function that has the same text and is placed already; else this one, placed and named."""
        alike = self._alike.setdefault(_outline(function), [])
        for other in alike:
            if self._body(other) == self._body(function):
                return other
        alike.append(function)
        function.attributes[LOOP_SCHEDULE] = ArrayAttr([StringAttr(line) for line in to_lines(tree)])
        return self._placed(function, label)

    def of_call(self, op: gk.CallKernelOp) -> func.FuncOp:
        """The function of a library call, placed in the module."""
        return self._placed(call_function(op), op.call.name)

    def _placed(self, function: func.FuncOp, label: str) -> func.FuncOp:
        function.sym_name = StringAttr(f"k{self._count}_{label}")
        self._count += 1
        self._module.body.block.insert_op_before(function, self._before or _first_function(self._module))
        return function

    def _body(self, function: func.FuncOp) -> str:
        """The text of a function's body. Printing takes a while, and few functions have an outline in common."""
        if function not in self._bodies:
            text = StringIO()
            Printer(text).print_region(function.body)
            self._bodies[function] = text.getvalue()
        return self._bodies[function]

    def note_kernels(self) -> None:
        """Write on each function where the operations of all its kernels come from; name its arguments after theirs."""
        for function, origins in self._origins.items():
            function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(o) for o in origins])
            for argument, *names in zip(function.args, *self._names[function], strict=False):
                argument.name_hint = valid_hint(shared_name(names))


def _outline(function: func.FuncOp) -> tuple[object, ...]:
    """Of a function that is not named yet: all of its text but the body, and the kinds of operations in that."""
    kinds = tuple(type(op) for op in function.body.walk())
    return function.function_type, function.arg_attrs, tuple(function.attributes.items()), kinds


def _is_in_shared_loop(kernel: gk.KernelOp) -> bool:
    """Whether a loop runs a kernel that threads may share (`outline-loops`)."""
    around = kernel.parent_op()
    while around is not None and not isinstance(around, scf.ForOp):
        around = around.parent_op()
    return around is not None and target_of(kernel).team > 1


def _first_function(module: ModuleOp) -> func.FuncOp:
    return next(f for f in module.body.block.ops if isinstance(f, func.FuncOp))


def _schedule(kernel: gk.KernelOp) -> gk.ScheduleAttr:
    """The kernel's schedule. Raises MSC0404 where it has none."""
    if kernel.schedule is None:
        message = f"kernel {kernel.label.data!r} has no schedule"
        raise MscError(Diagnostic("MSC0404", message, source_location(kernel), help="run schedule-kernels first"))
    return kernel.schedule


def _function(
    kernel: gk.KernelOp, model: KernelModel, outputs: Sequence[int], tree: Tree, machine: Machine
) -> func.FuncOp:
    """The function of loops that a tree says, with the instructions and the lines of a machine."""
    inputs = [i for i, a in enumerate(model.arrays) if a.kind == "input"]
    locations = [op.location for op in statement_operations(kernel)]
    counts = tuple(tile_counts(model, tree).values())
    nests = generate(model, tree)
    places, prefetches = storage(model, tree, nests), requests(model, tree, nests)
    builder = KernelFunction(
        model, nests, inputs, outputs, locations, counts, places, prefetches, machine.line, machine.abilities.units
    )
    function = builder.build()
    temporaries = len(function.function_type.inputs) - len(inputs) - len(outputs) - len(model.sizes)
    function.attributes[LOOP_OUTPUTS] = IntegerAttr(len(outputs), i64)
    function.attributes[LOOP_TEMPORARIES] = IntegerAttr(temporaries, i64)
    pairs = [
        DenseArrayBase.from_list(i64, [o, i])
        for o, output in enumerate(outputs)
        for i, source in enumerate(inputs)
        if all(may_overwrite(model, tree, source, target) for target in (output, *builder.held_in(output)))
    ]
    if pairs:
        function.attributes[LOOP_IN_PLACE] = ArrayAttr(pairs)
    return function


class ArgumentNames:
    """The names of kernels' inputs and outputs in a module."""

    def __init__(self, module: ModuleOp) -> None:
        self._read: dict[str, set[str]] = {
            op.symbol: {inner.symbol for inner in op.walk() if isinstance(inner, GetParameterOp)}
            for op in module.ops
            if isinstance(op, ParameterOp)
        }

    def of(self, kernel: KernelOp) -> tuple[str | None, ...]:
        """A name, where there is one, for each input and then each output."""
        pairs = zip(kernel.inputs, kernel.body.block.args, strict=True)
        return (*(self._input(outer, inner) for outer, inner in pairs), *(r.name_hint for r in kernel.results))

    def _input(self, outer: SSAValue, inner: SSAValue) -> str | None:
        if isinstance(outer.owner, GetParameterOp):
            return self._weight(outer.owner.symbol)
        return inner.name_hint

    def _weight(self, symbol: str) -> str:
        """The weight of the model that a derived one is another form of; its own name if it is made of several."""
        while len(sources := self._read.get(symbol, set())) == 1:
            (symbol,) = sources
        return symbol


def shared_name(names: Sequence[str | None]) -> str | None:
    """A name for an argument that kernels call differently: `fc1.weight` and `fc2.weight` are both a `weight`.

    None where they share none, or a number alone, such as `down.1` and `up.1`.
    """
    parts = {tuple((name or "").split(".")) for name in names}
    if len(parts) == 1:
        return names[0]
    last = {each[-1] for each in parts}
    name = last.pop() if len(last) == 1 else ""
    return name if name and not name[0].isdigit() else None


# The functions of library calls (`gk.call`): loops over the rows, with a call for each.
def call_function(op: gk.CallKernelOp) -> func.FuncOp:
    """Arguments: inputs, outputs, the scratch memory if no stack holds it, and the sizes that the call decides."""
    sizes, _ = valid_inputs(op)
    call, scratch = op.call, _scratch(op)
    on_stack = scratch is None or byte_size(scratch) <= target_of(op).machine.stack
    buffers = [buffer_type(tensor_type(value)) for value in (*op.inputs, *op.outputs)]
    if scratch is not None and not on_stack:
        buffers.append(scratch)
    types: list[Attribute] = [*buffers, *(IndexType() for _ in sizes)]
    block = Block(arg_types=types)
    for argument, hint in zip(block.args, (*call.inputs, *call.outputs, "scratch"), strict=False):
        argument.name_hint = valid_hint(hint)
    _call_rows(op, block, len(buffers), scratch if on_stack else None)
    block.add_op(func.ReturnOp())
    named = [*[DictionaryAttr({})] * len(buffers), *map(size_attributes, sizes)]
    function = func.FuncOp(call.name, (types, []), Region(block), arg_attrs=ArrayAttr(named) if sizes else None)
    function.attributes[LOOP_OUTPUTS] = IntegerAttr(len(op.outputs), i64)
    function.attributes[LOOP_TEMPORARIES] = IntegerAttr(len(buffers) - len(op.inputs) - len(op.outputs), i64)
    function.attributes[LOOP_ORIGIN] = ArrayAttr([StringAttr(origin(op).replace(op.name, f"gk.{call.name}", 1))])
    if call.in_place:
        pairs = [DenseArrayBase.from_list(i64, pair) for pair in sorted(call.in_place)]
        function.attributes[LOOP_IN_PLACE] = ArrayAttr(pairs)
    return function


def _scratch(op: gk.CallKernelOp) -> MemRefType[Attribute] | None:
    count = op.call.scratch(*op.rows)
    return contiguous(tensor_type(op.inputs[0]).element_type, (count,)) if count else None


def _call_rows(op: gk.CallKernelOp, block: Block, buffers: int, local: MemRefType[Attribute] | None) -> None:
    """Loops to the end of `block`; `local` is scratch memory on the stack."""
    given: list[SSAValue] = list(block.args[:buffers])
    sizes = block.args[buffers:]
    *ends, length = _extents(op, len(sizes))
    rows: list[SSAValue] = []
    for axis, end in enumerate(ends):
        nest = loop.ForOp(AffineMap(len(sizes), 0, (AffineConstantExpr(0),)), end, sizes, label=f"i{axis}")
        nest.variable.name_hint = f"i{axis}"
        block.add_op(nest)
        block, rows = nest.body.block, [*rows, nest.variable]
    if local is not None:
        alloca = memref.AllocaOp.get(local.element_type, shape=list(local.get_shape()))
        alloca.memref.name_hint = "scratch"
        block.add_op(alloca)
        given.append(alloca.memref)
    size = loop.ApplyOp(length, sizes)
    block.add_ops([size, loop.CallRowsOp(op.function.data, given, rows, size.result)])


def _extents(op: gk.CallKernelOp, sizes: int) -> Sequence[AffineMap]:
    """How many elements of the inputs are valid along each axis, over the sizes."""
    _, valid = valid_inputs(op)
    shape = static_shape(op.inputs[0])
    bounds = [upper_bound(dim) for dim in (valid[0] if valid else whole(shape))]
    return [
        AffineMap(sizes, 0, (AffineConstantExpr(extent) if bound is None else bound,))
        for extent, bound in zip(shape, bounds, strict=True)
    ]
