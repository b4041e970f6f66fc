"""What of each tensor of the entry function is valid, if a call's sizes are smaller than the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from msc.analysis.kernel_model import capacity_model, output_positions
from msc.dialects.gk import CallKernelOp, KernelOp
from msc.dialects.ms.base import BasicOp, ViewOp
from msc.dialects.ms.slices import ExtractSliceOp, InsertSliceOp
from msc.dialects.open_sizes import INSIDE, module_sizes, named_dims, said_bounds, valid_argument
from msc.ir.locations import source_location
from msc.ir.typed import static_shape
from msc.poly.model import KernelStatement, statements_of
from msc.poly.valid_extents import NotABox, Size, ValidShape, is_whole, meet, reshaped, upper_bound, whole
from msc.poly.valid_statements import ValidAnalysis
from msc.support.diagnostics import DecidedByCall, Diagnostic, MscError


class ValidExtents:
    """The valid part of every tensor of a module's entry function. Raises MSC0208 where there is none of that form.

    An `unfinished` one follows operations as far as it is asked to, so that they may be rewritten meanwhile.
    """

    def __init__(self, module: ModuleOp, entry: FuncOp, *, unfinished: bool = False) -> None:
        self.sizes: tuple[Size, ...] = module_sizes(module)
        self._known: dict[SSAValue, ValidShape] = {}
        self.statements: dict[Operation, tuple[list[KernelStatement], ValidAnalysis]] = {}
        """Of each basic operation: its statements and what of them runs."""
        given = entry.arg_attrs.data if entry.arg_attrs is not None else ()
        for argument, attributes in zip(entry.args, given, strict=False):
            shape = static_shape(argument)
            self._known[argument] = valid_argument(shape, named_dims(attributes.data, len(shape)), self.sizes)
        self._last: Operation | None = None
        self._block = entry.body.block
        if not unfinished:
            self.follow_to(None)

    def follow_to(self, end: Operation | None) -> None:
        """Follow the entry's operations before `end`, or all of them. Raises MSC0208."""
        op = self._block.first_op if self._last is None else self._last.next_op
        while op is not None and op is not end:
            self._follow(op)
            self._last, op = op, op.next_op

    def known(self, value: SSAValue) -> ValidShape | None:
        """The valid part of a tensor that was followed; None of others."""
        return self._known.get(value)

    def of(self, value: SSAValue) -> ValidShape:
        """The valid part of a tensor."""
        return self._known[value] if value in self._known else whole(static_shape(value))

    def reduced_by(self, value: SSAValue) -> Iterator[list[AffineExpr]]:
        """For each reduction that makes a tensor, seen through views, the sizes of the loops that it sums over."""
        while isinstance(value.owner, ViewOp):
            value = value.owner.operands[0]
        if not isinstance(value.owner, Operation) or value.owner not in self.statements:
            return
        statements, analysis = self.statements[value.owner]
        for statement, dims in zip((s for s in statements if s.points), analysis.statements, strict=True):
            if statement.reduced:
                found = [(statement.extents[d], upper_bound(dims[d])) for d in sorted(statement.reduced)]
                yield [AffineExpr.constant(n) if bound is None else bound for n, bound in found]

    def inputs(self, kernel: KernelOp) -> list[ValidShape]:
        """The valid parts of a kernel's inputs."""
        return [self.of(value) for value in kernel.inputs]

    def _follow_block(self, block: Block) -> None:
        for op in block.ops:
            self._follow(op)

    def _follow(self, op: Operation) -> None:
        try:
            match op:
                case ViewOp():
                    self._known[op.results[0]] = reshaped(self.of(op.operands[0]), static_shape(op.results[0]))
                case BasicOp() if op.is_basic:
                    self._basic(op)
                case KernelOp():
                    self._kernel(op)
                case CallKernelOp():
                    self._known.update(zip(op.outputs, self._called(op), strict=True))
                case ReturnOp() | scf.YieldOp():
                    return
                case scf.ForOp():
                    self._for(op)
                case ExtractSliceOp():
                    self._known[op.result] = self._entries(op)[1:]
                case InsertSliceOp():
                    self._known[op.result] = self._with_entry(self._entries(op), self.of(op.value))
                case _:
                    self._other(op)
        except NotABox as problem:
            raise _refused(op, str(problem), self.sizes) from problem

    def _basic(self, op: BasicOp) -> None:
        first = len(op.operands)
        values = [*op.operands, *op.results]
        dtypes = [op.result_dtype(k) for k in range(len(op.results))]
        statements = statements_of(op.compute(), range(first), range(first, len(values)), 0, dtypes)
        statements = [replace(s, bounds=said_bounds(op)) for s in statements]
        analysis = ValidAnalysis(
            [static_shape(v) for v in values], self.sizes, {k: self.of(v) for k, v in enumerate(op.operands)}
        )
        analysis.run([s for s in statements if s.points])
        self.statements[op] = statements, analysis
        for k, result in enumerate(op.results):
            self._known[result] = analysis.arrays.get(first + k, whole(static_shape(result)))

    def _kernel(self, op: KernelOp) -> None:
        model = capacity_model(op)
        analysis = ValidAnalysis([a.shape for a in model.arrays], self.sizes, dict(enumerate(self.inputs(op))))
        analysis.run(model.statements)
        for result, position in zip(op.results, output_positions(op), strict=True):
            self._known[result] = analysis.arrays.get(position, whole(model.arrays[position].shape))

    def _called(self, op: CallKernelOp) -> list[ValidShape]:
        """Rows of results as long as those of the inputs are as far valid."""
        *rows, row = valid = self.of(op.inputs[0])
        if any(self.of(value) != valid for value in op.inputs):
            raise NotABox("its inputs have rows of several sizes")
        if any(len(dim) > 1 and not is_whole(dim) for dim in valid):
            raise NotABox("the axes of rows are merged with others")
        length = static_shape(op.inputs[0])[-1:]
        counts = [static_shape(result)[-1:] for result in op.outputs]
        return [(*rows, *(whole(count) if count != length else (row,))) for count in counts]

    def _entries(self, op: ExtractSliceOp | InsertSliceOp) -> ValidShape:
        valid = self.of(op.x)
        if not is_whole(valid[0]) and INSIDE not in op.attributes:
            raise NotABox("slices are indexed along an open size")
        return valid

    def _with_entry(self, valid: ValidShape, entry: ValidShape) -> ValidShape:
        return (valid[0], *(meet(a, b) for a, b in zip(valid[1:], entry, strict=True)))

    def _for(self, op: scf.ForOp) -> None:
        """What is carried is valid as far as it is before the loop and after an iteration."""
        carried, last = op.body.block.args[1:], op.body.block.last_op
        shapes = [self.of(v) if isinstance(v.type, TensorType) else () for v in op.iter_args]
        for _ in range(3):
            self._known.update(zip(carried, shapes, strict=True))
            self._follow_block(op.body.block)
            after = [self.of(v) if isinstance(v.type, TensorType) else () for v in last.operands] if last else []
            found = [tuple(meet(x, y) for x, y in zip(a, b, strict=True)) for a, b in zip(shapes, after, strict=True)]
            if found == shapes:
                break
            shapes = found
        else:
            raise NotABox("a loop carries tensors whose open sizes change")
        self._known.update(zip(op.results, shapes, strict=True))

    def _other(self, op: Operation) -> None:
        """An operation that reads all of its operands, and inside its regions of other values."""
        read = [value for inner in op.walk() for value in inner.operands]
        if any(not is_whole(dim) for value in read for dim in self._known.get(value, ())):
            raise NotABox("it takes whole tensors, but its operand has an open size")


def _refused(op: Operation, message: str, sizes: Sequence[Size]) -> MscError:
    size = sizes[0]
    known = f'--dim {size.name}={size.high}, in Python dims={{"{size.name}": {size.high}}}'
    help_ = f"fix the size, for example {known}"
    return DecidedByCall(Diagnostic("MSC0208", f"{op.name}: {message}", source_location(op), help=help_))
