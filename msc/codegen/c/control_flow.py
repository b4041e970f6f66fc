"""The entry function's statements: calls in order, and scf.if, scf.for and scf.while around them.

Tensors that control flow carries have buffers already; what is left to carry are scalars, which become C variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, Operation, SSAValue

from msc.codegen.c.affine import IndexExpression
from msc.codegen.c.body import FunctionEmitter
from msc.codegen.c.loops import fits, head_text
from msc.codegen.c.plan import RENAMES, MemoryPlace
from msc.codegen.c.types import memory_name, no_c_form, value_type
from msc.codegen.c.values import CExpression, Precedence
from msc.dialects.loop import BufferSliceOp
from msc.ir.control_flow import integer_constant


@dataclass
class EntryBody(FunctionEmitter):
    """`call` gives the text of the next kernel call or copy, `entry` the name of an entry and its declaration."""

    call: Callable[[], str] = str
    places: Mapping[SSAValue, MemoryPlace] = field(default_factory=dict[SSAValue, MemoryPlace])
    entry: Callable[[MemoryPlace, str], tuple[str, str]] = lambda place, index: ("", "")

    _entries: dict[int, str] = field(default_factory=dict[int, str])

    def bind_place(self, value: SSAValue, pointer: str, place: MemoryPlace) -> None:
        """Make a buffer that `pointer`, an untyped pointer, leads to readable by element."""
        base = memory_name(place.buffer.base)
        shape = place.buffer.shape
        name = f"(({base} {place.buffer.row_pointer}){pointer})"
        self.buffers[value] = name if shape else f"{name}[0]", place.buffer

    def _operation(self, op: Operation) -> None:
        match op:
            case func.CallOp() | memref.CopyOp():
                self._write_pending()
                self.lines.add(self.call())
            case BufferSliceOp():
                self._entry(op)
            case scf.IfOp():
                self._if(op)
            case scf.ForOp():
                self._counted(op)
            case scf.WhileOp():
                self._while(op)
            case memref.ViewOp() | scf.YieldOp() | scf.ConditionOp():
                return
            case _ if isinstance(op, RENAMES):
                self._rename(op)
            case _:
                super()._operation(op)

    def _entry(self, op: BufferSliceOp) -> None:
        """`void *const e = (unsigned char *)x + i * 512;`."""
        place = self.places[op.result]
        index = self._use(op.index).at(Precedence.PRODUCT)
        self._write_pending()
        name, declaration = self.entry(place, index)
        self.lines.add(declaration)
        self._entries[place.entry] = name
        self.bind_place(op.result, name, place)

    def _rename(self, op: Operation) -> None:
        """Another shape of an entry; whole buffers are bound before."""
        place = self.places.get(op.results[0])
        if place is not None and place.entry:
            self.bind_place(op.results[0], self._entries[place.entry], place)

    def _if(self, op: scf.IfOp) -> None:
        condition = self._use(op.cond)
        self._write_pending()
        results = [self._declare(result) for result in op.results]
        with self._scoped(f"if ({condition.text})"):
            self.block(op.true_region.block)
            self._assign(results, _last_operands(op.true_region.block))
        if op.false_region.blocks and (results or len(list(op.false_region.block.ops)) > 1):
            with self._scoped("else"):
                self.block(op.false_region.block)
                self._assign(results, _last_operands(op.false_region.block))

    def _counted(self, op: scf.ForOp) -> None:
        lower, upper, step = (self._use(v).at(Precedence.SUM) for v in (op.lb, op.ub, op.step))
        known = fits(integer_constant(op.ub), integer_constant(op.step))
        carried = [
            self._declare(result, self._use(start)) for result, start in zip(op.results, op.iter_args, strict=True)
        ]
        self._write_pending()
        body = op.body.block
        name = self.scope.fresh(body.args[0].name_hint or "i", "i")
        self._bind(body.args[0], name)
        for argument, variable in zip(body.args[1:], carried, strict=True):
            self._bind(argument, variable)
        with self._scoped(head_text(name, lower, upper, step, fits=known)):
            self.block(body)
            self._assign(carried, _last_operands(body))

    def _while(self, op: scf.WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        results = [self._declare(result) for result in op.results]
        starts = [self._use(value) for value in op.arguments]
        carried = [self._declare(a, start) for a, start in zip(before.args, starts, strict=True)]
        self._write_pending()
        condition = before.last_op
        if not isinstance(condition, scf.ConditionOp):
            raise no_c_form("an scf.while without scf.condition")
        with self._scoped("for (;;)"):
            self.block(before)
            go_on = self._use(condition.condition)
            self._assign(results, condition.args)
            self.lines.add(f"if (!{go_on.at(Precedence.UNARY)})")
            self.lines.add("    break;")
            for argument, variable in zip(after.args, results, strict=True):
                self._bind(argument, variable)
            self.block(after)
            self._assign(carried, _last_operands(after))

    def _scoped(self, head: str) -> _Block:
        return _Block(self, head)

    def _declare(self, value: SSAValue, start: CExpression | None = None) -> str:
        type_ = value_type(value.type)
        name = self.scope.fresh(value.name_hint or "v")
        self.lines.add(f"{self.prelude.type_name(type_)} {name}{f' = {start.text}' if start else ''};")
        self._bind(value, name)
        return name

    def _bind(self, value: SSAValue, name: str) -> None:
        type_ = value_type(value.type)
        if type_.base == "index":
            self.ranges[value] = IndexExpression(CExpression(name, type_))
        self.values[value] = CExpression(name, type_)

    def _assign(self, names: Sequence[str], values: Sequence[SSAValue]) -> None:
        """All at once: a value may read a name that another assignment changes."""
        texts = [self._use(value) for value in values]
        self._write_pending()
        pairs = [(n, t) for n, t in zip(names, texts, strict=True) if t.text != n]
        if len(pairs) == 1:
            self.lines.add(f"{pairs[0][0]} = {pairs[0][1].text};")
            return
        temporaries = [self.scope.fresh(f"next_{name}") for name, _ in pairs]
        for temporary, (_, value) in zip(temporaries, pairs, strict=True):
            self.lines.add(f"const {self.prelude.type_name(value.type)} {temporary} = {value.text};")
        for temporary, (name, _) in zip(temporaries, pairs, strict=True):
            self.lines.add(f"{name} = {temporary};")


class _Block:
    """A brace-delimited block with its own scope."""

    def __init__(self, body: EntryBody, head: str) -> None:
        self._body = body
        self._braces = body.lines.braces(head)

    def __enter__(self) -> None:
        self._body.scope.enter()
        self._braces.__enter__()

    def __exit__(self, *error: object) -> None:
        self._braces.__exit__(None, None, None)
        self._body.scope.leave()


def _last_operands(block: Block) -> Sequence[SSAValue]:
    return block.last_op.operands if isinstance(block.last_op, scf.YieldOp) else ()
