"""Pass `inline-calls`."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, LocationAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from msc.analysis.properties import INLINED, UNCLUSTERED
from msc.ir.contracts import Contract
from msc.ir.entry import entries, is_entry
from msc.ir.locations import source_location
from msc.support.diagnostics import Diagnostic, MscError, did_you_mean

MAXIMUM_OPERATIONS = 200_000
"""Of a function with everything that it calls: functions that call each other twice grow exponentially."""


@dataclass(frozen=True)
class InlineCalls(ModulePass):
    """Put the body of each function in the place of its calls, and drop the functions that are no entries.

    Takes: functions at the graph stage with `func.call`, also inside `scf`. Gives: the entry functions alone, without
    calls. An operation that came from a function has a call site as its location: where it stands, and who called.
    Every call is inlined, however often there is one: kernels that come out the same share one function of C all the
    same, and only inside the caller can shapes be inferred, constants folded and neighbours fused.
    Raises MSC0412 for a function that calls itself, directly or through others, MSC0413 where the whole would be too
    large, and MSC0605 for a function that the module does not have.
    """

    name = "inline-calls"
    contract = Contract(requires=(UNCLUSTERED,), ensures=(INLINED,))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        inliner = _Inliner({f.sym_name.data: f for f in op.ops if isinstance(f, FuncOp)})
        for entry in entries(op):
            inliner.measure(entry)
        for entry in entries(op):
            inliner.inline_into(entry)
        for function in inliner.functions.values():
            if not is_entry(function):
                Rewriter.erase_op(function, safe_erase=False)


@dataclass
class _Inliner:
    functions: dict[str, FuncOp]
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """Operations of functions with all that they call."""
    active: list[str] = field(default_factory=list[str])
    """The functions that are being measured, each called by the one before."""
    done: set[str] = field(default_factory=set[str])

    def measure(self, function: FuncOp) -> int:
        """The operations of a function with all that it calls. Raises what the pass raises, before anything is done."""
        name = function.sym_name.data
        if name not in self.sizes:
            self.active.append(name)
            size = 0
            for op in function.body.walk():
                size += self.measure(self._callee(op)) if isinstance(op, CallOp) else 1
                if size > MAXIMUM_OPERATIONS:
                    message = f"@{name} with all that it calls has more than {MAXIMUM_OPERATIONS} operations"
                    raise MscError(Diagnostic("MSC0413", message, source_location(op)))
            self.sizes[name] = size
            self.active.pop()
        return self.sizes[name]

    def _callee(self, call: CallOp) -> FuncOp:
        name = call.callee.string_value()
        function = self.functions.get(name)
        if function is None or not function.body.blocks:
            message = f"the module has no function @{name}" + ("" if function is None else " with a body")
            near = did_you_mean(name, self.functions) if function is None else None
            raise MscError(Diagnostic("MSC0605", message, source_location(call), help=near))
        if name in self.active:
            chain = " calls ".join(f"@{n}" for n in (*self.active[self.active.index(name) :], name))
            help_ = "write the recursion as an scf.while or scf.for"
            raise MscError(Diagnostic("MSC0412", f"recursion: {chain}", source_location(call), help=help_))
        return function

    def inline_into(self, function: FuncOp) -> None:
        """Replace all calls in a function, once those in the functions that it calls are replaced."""
        if function.sym_name.data in self.done:
            return
        self.done.add(function.sym_name.data)
        for call in [op for op in function.body.walk() if isinstance(op, CallOp)]:
            callee = self.functions[call.callee.string_value()]
            self.inline_into(callee)
            _replace(call, callee)


def _replace(call: CallOp, callee: FuncOp) -> None:
    """Put a copy of a function's body in the place of a call of it."""
    body = callee.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, call.arguments, strict=True))
    copies: list[Operation] = []
    last = body.last_op
    assert isinstance(last, ReturnOp)
    for op in body.ops:
        if op is not last:
            copy = op.clone(values)
            _note_call(op, copy, call.location)
            copies.append(copy)
    Rewriter.replace_op(call, copies, [values.get(value, value) for value in last.arguments])


def _note_call(op: Operation, copy: Operation, call: LocationAttr) -> None:
    """Give a copy, and all in it, the locations of the original as called from `call`."""
    for original, made in zip(op.walk(), copy.walk(), strict=True):
        known = original.location != UNKNOWN_LOC
        made.location = CallSiteLoc(original.location, call) if known and call != UNKNOWN_LOC else original.location
