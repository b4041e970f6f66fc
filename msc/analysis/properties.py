"""What passes require of modules and make of them (`msc.ir.contracts`), each as a question that a walk answers.

Properties stand in the order in which a compilation gives them to a module. Those of the regions of derived parameters
are never asked: these stay graphs until the weights are written.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult

from msc.analysis.constancy import Constancy
from msc.analysis.generated import is_generated
from msc.analysis.kernels import kernels_in
from msc.analysis.layout_views import LayoutViews
from msc.dialects.gk import KernelOp, KernelYieldOp, MaterializeOp
from msc.dialects.gk.attributes import GK_FUNCTION, GK_SCHEDULE
from msc.dialects.loop import ForOp, LoopKind
from msc.dialects.ms.attributes import MS_ROLE
from msc.dialects.ms.barrier import BarrierOp
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.dialects.ms.constants import splat_of
from msc.dialects.ms.slices import SliceAccessOp
from msc.dialects.ms.structure import ConstantOp, GetParameterOp
from msc.ir.contracts import Contract, Property, Violation
from msc.ir.entry import entries
from msc.ir.typed import is_tensor


def _operations(module: ModuleOp) -> Iterator[Operation]:
    """The operations of functions, at all depths."""
    for op in module.ops:
        if isinstance(op, FuncOp):
            yield from op.walk()


def _called(module: ModuleOp) -> Iterator[Violation]:
    for op in _operations(module):
        if isinstance(op, CallOp) and any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
            yield Violation(op, "calls a function on tensors")


def _open_shapes(module: ModuleOp) -> Iterator[Violation]:
    for op in _operations(module):
        for result in op.results:
            if is_tensor(result.type) and DYNAMIC_INDEX in result.type.get_shape():
                yield Violation(op, f"is a {result.type}")


def _composites(module: ModuleOp) -> Iterator[Violation]:
    for op in _operations(module):
        if isinstance(op, MsOp) and not _computes_nothing(op) and not (isinstance(op, BasicOp) and op.is_basic):
            yield Violation(op, "is not basic")


def _computes_nothing(op: Operation) -> bool:
    return isinstance(op, ViewOp | BarrierOp | SliceAccessOp | GetParameterOp | ConstantOp)


def _data_constants(module: ModuleOp) -> Iterator[Violation]:
    for op in _operations(module):
        if isinstance(op, ConstantOp) and not isinstance(op.parent_op(), KernelOp) and not is_kept_in_kernels(op):
            yield Violation(op, "is data that no kernel can contain")


def is_kept_in_kernels(constant: ConstantOp) -> bool:
    """Whether a constant is one value everywhere, and only basic operations use it: kernels copy it."""
    if splat_of(constant.result) is None:
        return False
    return all(isinstance(use.operation, BasicOp) for use in constant.result.uses)


def _work_on_weights(module: ModuleOp) -> Iterator[Violation]:
    constancy = Constancy()
    for function in module.ops:
        if isinstance(function, FuncOp):
            for result in constant_results(function, constancy):
                yield Violation(result.op, "computes on weights in every call")


def constant_results(function: FuncOp, constancy: Constancy) -> Iterator[OpResult]:
    """Constant values that are worth storing, and used by something that is not."""
    for op in function.walk():
        if isinstance(op, MsOp) and not isinstance(op, GetParameterOp) and not isinstance(op.parent_op(), KernelOp):
            for result in op.results:
                if _is_worth_storing(result, constancy) and _is_used(result, constancy):
                    yield result


def _is_worth_storing(result: OpResult, constancy: Constancy) -> bool:
    return constancy.of(result) and not is_generated(result)


def _is_used(result: OpResult, constancy: Constancy) -> bool:
    """Whether something uses a value that is not stored itself."""
    users = (use.operation for use in result.uses)
    return any(not isinstance(op, MsOp) or not all(_is_worth_storing(r, constancy) for r in op.results) for op in users)


def _in_kernels(module: ModuleOp) -> Iterator[Violation]:
    return (Violation(kernel, "is a kernel") for kernel in kernels_in(module))


def _outside_kernels(module: ModuleOp) -> Iterator[Violation]:
    constancy = Constancy()
    for op in _operations(module):
        if isinstance(op, KernelOp):
            yield from _foreign(op)
        elif isinstance(op, MsOp) and not isinstance(op.parent_op(), KernelOp) and not _may_stand_alone(op, constancy):
            yield Violation(op, "is outside kernels, where only views, slices and parameters may be")


def _may_stand_alone(op: MsOp, constancy: Constancy) -> bool:
    """Whether no kernel has to compute an operation: it is none, or work on weights, which is hoisted."""
    return _computes_nothing(op) or all(_is_worth_storing(r, constancy) for r in op.results)


def _foreign(kernel: KernelOp) -> Iterator[Violation]:
    """Kernels hold basic operations, constants, and views that only say how inputs and outputs lie in memory."""
    unknown = [
        op
        for op in kernel.body.block.ops
        if not (isinstance(op, BasicOp) and op.is_basic)
        and not isinstance(op, ConstantOp | MaterializeOp | KernelYieldOp)
    ]
    views = LayoutViews.of(kernel).operations if unknown else frozenset[Operation]()
    return (
        Violation(op, "is inside a kernel, which contains only basic operations") for op in unknown if op not in views
    )


def _scheduled(module: ModuleOp) -> Iterator[Violation]:
    return (Violation(k, f"{k.label} has a schedule") for k in kernels_in(module) if GK_SCHEDULE in k.attributes)


def _unscheduled(module: ModuleOp) -> Iterator[Violation]:
    return (Violation(k, f"{k.label} has no schedule") for k in kernels_in(module) if GK_SCHEDULE not in k.attributes)


def _without_function(module: ModuleOp) -> Iterator[Violation]:
    functions = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp)}
    for kernel in kernels_in(module):
        named = kernel.attributes.get(GK_FUNCTION)
        if not isinstance(named, SymbolRefAttr) or named.string_value() not in functions:
            yield Violation(kernel, f"{kernel.label} has no function")


def _vector_loops(module: ModuleOp) -> Iterator[Violation]:
    for op in _operations(module):
        if isinstance(op, ForOp) and op.kind.data is LoopKind.VECTOR:
            yield Violation(op, "is a loop of kind vector")


def _tensors(module: ModuleOp) -> Iterator[Violation]:
    for entry in entries(module):
        for op in entry.walk():
            values = (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args))
            if any(isinstance(value.type, TensorType) for value in values):
                yield Violation(op, "has values that are tensors")


def _buffers(module: ModuleOp) -> Iterator[Violation]:
    for entry in entries(module):
        if any(isinstance(type_, MemRefType) for type_ in entry.function_type.inputs):
            yield Violation(entry, "takes buffers")


def _planned(module: ModuleOp) -> Iterator[Violation]:
    return (
        Violation(entry, "has a workspace or weights as arguments") for entry in entries(module) if _is_placed(entry)
    )


def _unplaced(module: ModuleOp) -> Iterator[Violation]:
    return (Violation(entry, "allocates its buffers") for entry in entries(module) if not _is_placed(entry))


def _is_placed(entry: FuncOp) -> bool:
    roles = (attributes.data.get(MS_ROLE) for attributes in entry.arg_attrs or ())
    return any(isinstance(role, StringAttr) and role.data in ("workspace", "weights") for role in roles)


INLINED = Property("Inlined", "functions without calls", _called)
SHAPES_KNOWN = Property("ShapesKnown", "known shapes", _open_shapes)
BASIC_OPS = Property("BasicOps", "basic operations", _composites)
CONSTANTS_ARE_PARAMETERS = Property("ConstantsAreParameters", "constants that kernels can contain", _data_constants)
WEIGHTS_HOISTED = Property("WeightsHoisted", "weights without work in every call", _work_on_weights)
UNCLUSTERED = Property("Unclustered", "operations outside kernels", _in_kernels)
KERNELS = Property("Kernels", "kernels", _outside_kernels)
UNSCHEDULED = Property("Unscheduled", "kernels without schedules", _scheduled)
SCHEDULED = Property("Scheduled", "schedules", _unscheduled)
KERNEL_FUNCTIONS = Property("KernelFunctions", "functions of kernels", _without_function)
VECTORS = Property("Vectors", "vector operations instead of vector loops", _vector_loops)
TENSORS = Property("Tensors", "tensors", _buffers)
BUFFERS = Property("Buffers", "buffers", _tensors)
UNPLACED = Property("Unplaced", "buffers without offsets", _planned)
PLACED = Property("Placed", "buffers with offsets", _unplaced)

PROPERTIES = (
    *(INLINED, SHAPES_KNOWN, BASIC_OPS, CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED),
    *(UNCLUSTERED, KERNELS, UNSCHEDULED, SCHEDULED),
    *(KERNEL_FUNCTIONS, VECTORS, TENSORS, BUFFERS, UNPLACED, PLACED),
)
"""All of msc's own; a back end may have others for its own passes."""

REWRITES_GRAPH = Contract(requires=(SHAPES_KNOWN, UNCLUSTERED), breaks=(CONSTANTS_ARE_PARAMETERS, WEIGHTS_HOISTED))
"""The contract of a pass that puts operations in the place of others in front of kernels."""
