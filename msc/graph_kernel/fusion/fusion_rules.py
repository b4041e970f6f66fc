"""The rules of clustering: which two areas may be merged, and the reasons against it.

Fusion builds only kernels that the scheduler supports: elementwise operations on one shape, also on boxes that are
sliced from tensors computed outside; one contraction, window, movement or other reduction, or gathers of one shape,
with an elementwise epilogue of the result's shape, such a reduction also with an elementwise prologue; or reductions
over the same rows with all elementwise operations on these rows.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult

from msc.analysis.patterns import AreaPattern, Pattern, is_cut
from msc.dialects.element_types import dtype_name
from msc.dialects.ms.accumulation import AccumulatingOp
from msc.dialects.ms.arithmetic import AddOp
from msc.dialects.ms.indexing import GatheringOp
from msc.dialects.ms.shapes import Shape, broadcast_shapes, shape_of, shape_text
from msc.dialects.ms.windows import WindowOp
from msc.graph_kernel.fusion.areas import MOST_OPERATIONS, Area, AreaGraph, result_shapes
from msc.graph_kernel.fusion.quantised_epilogues import is_quantised_epilogue, makes_reals_of_kept_bytes
from msc.ir.errors import ShapeConflict
from msc.ir.typed import tensor_type


@dataclass(frozen=True)
class Limits:
    """How large an area may grow: operations, reductions among them, and whether it may hold several shapes.

    Broadcasts inside come last: taken early, they keep their consumer from joining reductions over its rows. Without
    `integer_epilogues` nothing follows a product of bytes with sums of i32 but a bias, and one scale to f16 or bytes.
    Without `prologues` a reduction over other than the last axes takes nothing of what it reduces.
    Without `gathers` what data chooses is moved by a kernel of its own. Without `wide_types` what has elements of 64
    bits fuses with nothing that has none. Without `shared_sums` a kernel with a product has one result: nothing is
    fused into it that reads what others read too.
    """

    operations: int = MOST_OPERATIONS
    reductions: int = 20
    broadcasts: bool = True
    integer_epilogues: bool = True
    prologues: bool = True
    gathers: bool = True
    wide_types: bool = True
    shared_sums: bool = True


@dataclass(frozen=True)
class FusionDecision:
    """The pattern of the merged area, or None if it is refused, and the reason."""

    merged: AreaPattern | None
    reason: str


_WIDE = ("i64", "ui64", "f64")
_ALONE = {
    Pattern.MOVEMENT: "an operation that moves elements takes no prologue",
    Pattern.REDUCE: "a reduction over axes other than the last takes no prologue with other readers",
    Pattern.WINDOW: "a window reduction reads its input many times and is a kernel of its own",
    Pattern.CONTRACTION: "a contraction reads its operands many times and takes no prologue",
}


def decide(graph: AreaGraph, producer: Area, consumer: Area, limits: Limits) -> FusionDecision:
    """Whether a consumer may be merged with a producer of its operands; both are fusible."""
    if Pattern.OPAQUE in (producer.kind, consumer.kind):
        return FusionDecision(None, "an operation of several statements is a kernel of its own")
    if not limits.gathers and any(isinstance(op, GatheringOp) for op in (producer.anchor, consumer.anchor)):
        return FusionDecision(None, "moves follow indices; the vector unit computes in a kernel of its own")
    if not limits.wide_types and _is_wide(producer.anchor) != _is_wide(consumer.anchor):
        return FusionDecision(None, "the vector unit has no elements of 64 bits")
    if not limits.integer_epilogues and _widens_integers(producer.anchor) and not _leaves_with_sums(producer, consumer):
        return FusionDecision(None, "the matrix unit adds a bias to sums of i32, and scales them once")
    if not limits.shared_sums and producer.kind == Pattern.CONTRACTION and _has_other_readers(producer, consumer):
        return FusionDecision(None, "the matrix unit's kernels have one result, and this one has other readers")
    if any(is_cut(op) and graph.owner(op.operands[0]) is producer for op in consumer.ops):
        return FusionDecision(None, _ALONE[Pattern.MOVEMENT])
    if limits.integer_epilogues and makes_reals_of_kept_bytes(consumer):
        return FusionDecision(None, "others read the bytes: they are written, and what reads the reals makes them")
    decision = _by_pattern(graph, producer, consumer, limits)
    if decision.merged is None:
        return decision
    if not limits.broadcasts and decision.merged.pattern == Pattern.BROADCAST and producer.domain != consumer.domain:
        return FusionDecision(None, "broadcasts inside a kernel come last")
    if len(producer.ops) + len(consumer.ops) > limits.operations:
        return FusionDecision(None, f"the kernel would have more than {limits.operations} operations")
    if decision.merged.pattern == Pattern.ROWS and _reductions(producer, consumer) > limits.reductions:
        return FusionDecision(None, f"the kernel would have more than {limits.reductions} reductions")
    if graph.has_detour(producer, consumer):
        return FusionDecision(None, "another kernel is between the two")
    return decision


def _is_wide(op: Operation) -> bool:
    """Whether an operation reads or writes elements of 64 bits."""
    return any(dtype_name(tensor_type(value).element_type) in _WIDE for value in (*op.operands, *op.results))


def _has_other_readers(producer: Area, consumer: Area) -> bool:
    inside = {*producer.ops, *consumer.ops}
    return any(use.operation not in inside for op in producer.ops for result in op.results for use in result.uses)


def _widens_integers(op: Operation) -> bool:
    """Whether an operation is a product of bytes whose sums are wider."""
    return isinstance(op, AccumulatingOp) and op.WIDENS_INTEGERS and op.result_dtype() != op.dtype(0) == "i8"


def _leaves_with_sums(product: Area, consumer: Area) -> bool:
    return _is_bias(product, consumer) or is_quantised_epilogue(product, consumer)


def _is_bias(product: Area, consumer: Area) -> bool:
    """Whether a consumer adds one number for each column, or channel, to a product alone."""
    op, sums = consumer.anchor, product.anchor.results[0]
    if len(product.ops) > 1 or len(consumer.ops) > 1 or not isinstance(op, AddOp) or not sums.has_one_use():
        return False
    rank, channel = len(product.domain), 1 if isinstance(product.anchor, WindowOp) else len(product.domain) - 1
    others = [shape_of(tensor_type(v)) for v in op.operands if v is not sums]
    return len(others) == 1 and all(
        size == 1 or rank - len(others[0]) + axis == channel for axis, size in enumerate(others[0])
    )


def _reductions(*areas: Area) -> int:
    ops = (op for area in areas for op in area.ops)
    return sum(1 for op in ops if op.name.startswith("ms.reduce_"))


def _by_pattern(graph: AreaGraph, producer: Area, consumer: Area, limits: Limits) -> FusionDecision:
    if Pattern.ROWS in (producer.kind, consumer.kind) and all(
        a.is_elementwise or _is_rows(a) for a in (producer, consumer)
    ):
        return _rows(producer, consumer)
    if consumer.is_elementwise:
        return _elementwise(graph, producer, consumer) if producer.is_elementwise else _epilogue(producer, consumer)
    if producer.is_elementwise and limits.prologues and _is_prologue(graph, producer, consumer):
        return FusionDecision(consumer.pattern, "elementwise prologue of a reduction, without other readers")
    if producer.is_elementwise or all(isinstance(area.anchor, GatheringOp) for area in (producer, consumer)):
        return _side_input(graph, producer, consumer)
    return FusionDecision(
        None, _ALONE.get(consumer.kind, "reductions over rows take no result of another kernel as prologue")
    )


def _is_rows(area: Area) -> bool:
    return area.kind == Pattern.ROWS


def _epilogue(producer: Area, consumer: Area) -> FusionDecision:
    """After an anchor: elementwise work on exactly the shape of its result."""
    if any(shape != producer.domain for shape in result_shapes(consumer)):
        shapes = f"{shape_text(consumer.domain)}, not {shape_text(producer.domain)}"
        return FusionDecision(None, f"an epilogue has the shape of the result, and this has {shapes}")
    return FusionDecision(producer.pattern, f"elementwise epilogue, same shape {shape_text(producer.domain)}")


def _is_prologue(graph: AreaGraph, producer: Area, consumer: Area) -> bool:
    """Whether an area computes element by element what a reduction over other than the last axes alone reads."""
    if consumer.kind != Pattern.REDUCE or graph.users(producer) != [consumer]:
        return False
    reduced = shape_of(tensor_type(consumer.anchor.operands[0]))
    return reduced != consumer.domain and all(shape == reduced for shape in result_shapes(producer))


def _side_input(graph: AreaGraph, producer: Area, consumer: Area) -> FusionDecision:
    """Before the epilogue of an anchor: work of the same shape that the anchor itself does not read."""
    if any(graph.owner(value) is producer for value in consumer.anchor.operands):
        return FusionDecision(None, _ALONE[consumer.kind])
    if any(shape != consumer.domain for shape in result_shapes(producer)):
        return FusionDecision(None, f"the operand of the epilogue has another shape than {shape_text(consumer.domain)}")
    return FusionDecision(consumer.pattern, "operand of the epilogue, same shape")


def _elementwise(graph: AreaGraph, producer: Area, consumer: Area) -> FusionDecision:
    merged = AreaPattern(max(producer.kind, consumer.kind), consumer.domain)
    if producer.domain == consumer.domain:
        return FusionDecision(merged, f"elementwise on one shape {shape_text(consumer.domain)}")
    if not broadcasts_to(producer.domain, consumer.domain):
        return FusionDecision(
            None, f"{shape_text(producer.domain)} does not broadcast to {shape_text(consumer.domain)}"
        )
    if any(user is not consumer for user in graph.users(producer)):
        return FusionDecision(None, f"its {shape_text(producer.domain)} result has other readers")
    merged = AreaPattern(Pattern.BROADCAST, consumer.domain)
    return FusionDecision(merged, f"{shape_text(producer.domain)} is broadcast to {shape_text(consumer.domain)} inside")


def broadcasts_to(small: Shape, large: Shape) -> bool:
    """Whether a shape broadcasts to another one."""
    try:
        return broadcast_shapes("", small, large) == large
    except ShapeConflict:
        return False


def _rows(producer: Area, consumer: Area) -> FusionDecision:
    """Reductions over the same last axes, and elementwise work on the same rows."""
    rows = producer if _is_rows(producer) else consumer
    ops = dict.fromkeys((*producer.ops, *consumer.ops))
    misfit = next((op for op in ops if not _fits_rows(op, ops, rows.pattern)), None)
    if misfit is not None:
        text = shape_text(rows.domain)
        return FusionDecision(None, f"{misfit.name} does not work on the rows of {text} that are reduced")
    return FusionDecision(rows.pattern, f"{_role(producer, consumer)} the same rows of {shape_text(rows.domain)}")


def _role(producer: Area, consumer: Area) -> str:
    """What the consumer does with the rows."""
    if not _is_rows(consumer):
        return "elementwise on"
    return "another reduction over" if _is_rows(producer) else "reduces"


def row_shapes(pattern: AreaPattern) -> tuple[Shape, Shape]:
    """The shape of one element a row, with the reduced axes as 1 and without them."""
    kept = pattern.domain[: len(pattern.domain) - pattern.reduced]
    return (*kept, *(1 for _ in range(pattern.reduced))), kept


def _fits_rows(op: Operation, ops: Container[Operation], rows: AreaPattern) -> bool:
    """Whether an operation computes rows, or one element a row, and reads nothing of another row."""
    column, kept = row_shapes(rows)
    shape = shape_of(tensor_type(op.results[0]))
    if op.name.startswith("ms.reduce_"):
        return shape in (column, kept) and shape_of(tensor_type(op.operands[0])) == rows.domain
    inner = [v for v in op.operands if isinstance(v, OpResult) and v.op in ops]
    reads = {shape_of(tensor_type(value)) for value in inner}
    return shape in (rows.domain, column, kept) and reads <= {shape, column}
