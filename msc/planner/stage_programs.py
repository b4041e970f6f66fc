"""The program of one stage of a pipeline, of a program that has the passes of all stages and micro-batches.

Operations have the pass that they belong to (`ms.pass`); the others, as updates, run where their largest operand is
made, and what no stage makes, on every stage that needs it. All stages order their passes as one schedule does, so that
any two meet in one order; a value that another stage needs is sent as soon as it is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from msc.analysis.bytes import bytes_of
from msc.dialects import ms
from msc.dialects.arrays import tensor_dtype
from msc.dialects.ms.collectives import CollectiveOp
from msc.dialects.ms.constants import constant_of
from msc.dialects.ms.pipeline import PipelinePass
from msc.dialects.ms.properties import to_attribute
from msc.dialects.ms.structure import GetParameterOp, ParameterOp
from msc.ir.entry import entries
from msc.ir.locations import set_location
from msc.ir.typed import is_tensor, shape, tensor_type
from msc.planner.pipeline import simulate
from msc.planner.step import Schedule
from msc.support.diagnostics import Diagnostic, MscError


@dataclass
class StagePrograms:
    """The stages of a module whose collectives are those of `ranks` ranks: each stage has as many.

    `updates` has for each result that is the new value of an argument the number of that argument. `holders` says on
    which stages each result is. Raises MSC1110 for an operation on a stage that there is not.
    """

    module: ModuleOp
    stages: int
    ranks: int
    schedule: Schedule
    updates: Mapping[int, int]
    holders: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def __post_init__(self) -> None:
        (self.function,) = entries(self.module)
        block = self.function.body.block
        self.ops = list(block.ops)[:-1]
        last = block.last_op
        assert isinstance(last, ReturnOp)
        self.last = last
        self.passes: dict[Operation, PipelinePass] = {}
        self.home: dict[Operation, int | None] = {}
        fixed: set[Operation] = set()
        for op in self.ops:
            found = PipelinePass.of(op)
            if all(v.owner in fixed for v in _used(op)):
                fixed.add(op)  # of constants and parameters: the pass that made it first is not the only one
            elif found is not None:
                self.passes[op] = found
            self.home[op] = self._home(op)
        self.order = self._order()
        self.runs: set[tuple[Operation, int]] = set()
        self.receivers: dict[SSAValue, list[int]] = {}
        self.read: set[tuple[SSAValue, int]] = set()
        self._find_needs()

    def _home(self, op: Operation) -> int | None:
        """The stage that computes an operation; None for all that need it."""
        found = self.passes.get(op)
        if found is not None:
            if found.stage >= self.stages:
                message = f"{op.name} is on stage {found.stage}, and there are {self.stages}"
                raise MscError(Diagnostic("MSC1110", message, help="stages count from 0 to pipeline_stages - 1"))
            return found.stage
        made = [
            (bytes_of(v) if is_tensor(v.type) else 0, -home) for v in _used(op) if (home := self._of(v)) is not None
        ]
        return -max(made)[1] if made else None

    def _of(self, value: SSAValue) -> int | None:
        return self.home.get(value.owner) if isinstance(value.owner, Operation) else None

    def _order(self) -> list[Operation]:
        """All operations as the schedule has them: each as early as its pass, and what it reads, allow."""
        count = 1 + max((found.micro for found in self.passes.values()), default=0)
        events = simulate(self.schedule, [1.0] * self.stages, [2.0] * self.stages, count)
        events.sort(key=lambda event: (event.start, event.stage))
        turns = {PipelinePass(e.backward, e.micro_batch, e.stage): turn for turn, e in enumerate(events)}
        turn: dict[Operation, int] = {}
        for op in self.ops:
            read = [turn[v.owner] for v in _used(op) if isinstance(v.owner, Operation)]
            turn[op] = max([turns[self.passes[op]] if op in self.passes else -1, *read])
        return sorted(self.ops, key=lambda op: turn[op])

    def _find_needs(self) -> None:
        """Which stage runs what, and sends which values where: from what results need, and what has effects."""
        results = list(self.last.operands)
        every = range(self.stages)
        renewed = {argument: results[result] for result, argument in self.updates.items()}
        waiting: list[tuple[SSAValue, int]] = []
        for k, value in enumerate(results):
            home = self._of(value)
            waiting += [(value, stage) for stage in (every if k not in self.updates or home is None else [home])]
        for op in self.ops:
            if isinstance(op, CollectiveOp) or not op.results:
                home = self.home[op]
                waiting += [(v, stage) for stage in (every if home is None else [home]) for v in self._run(op, stage)]
        while waiting:
            value, stage = waiting.pop()
            if (value, stage) in self.read:
                continue
            self.read.add((value, stage))
            if isinstance(value, BlockArgument):
                waiting += [(renewed[value.index], stage)] if value.index in renewed else []
                continue
            assert isinstance(value.owner, Operation)
            home = self.home[value.owner]
            if home is None or home == stage:
                waiting += [(v, stage) for v in self._run(value.owner, stage)]
            else:
                self.receivers.setdefault(value, []).append(stage)
                waiting.append((value, home))
        for k, value in enumerate(results):
            self.holders[k] = {stage for stage in every if (value, stage) in self.read}

    def _run(self, op: Operation, stage: int) -> Sequence[SSAValue]:
        """What an operation reads that is to run on a stage."""
        if (op, stage) in self.runs:
            return ()
        self.runs.add((op, stage))
        return list(_used(op))

    def take(self, stage: int) -> tuple[list[int], list[int]]:
        """Make the module the program of a stage; the numbers of the arguments and the results that it has."""
        block = self.function.body.block
        for op in self.ops:
            op.detach()
        for op in self.order:
            if (op, stage) in self.runs:
                block.insert_op_before(op, self.last)
                if isinstance(op, CollectiveOp):
                    for name in ("ranks", "to"):
                        if name in op.properties:
                            op.properties[name] = to_attribute([r + stage * self.ranks for r in op.ints(name)])
            for value in op.results:
                for receiver in sorted(self.receivers.get(value, ())):
                    self._message(value, stage, receiver, block)
        results = [k for k in range(len(self.last.operands)) if stage in self.holders[k]]
        self.last.operands = [self.last.operands[k] for k in results]
        for op in reversed(self.order):
            if (op, stage) not in self.runs:
                op.erase(safe_erase=False)
        arguments = [k for k, a in enumerate(block.args) if a.first_use is not None]
        self._keep(arguments, results)
        return arguments, results

    def _message(self, value: SSAValue, stage: int, receiver: int, block: Block) -> None:
        """A value goes from its stage to another: this one gives it, gets it, or has nothing to do with it."""
        sender = self._of(value)
        assert sender is not None
        if stage not in (sender, receiver):
            return
        given = value
        if stage == receiver:
            constant = constant_of(np.zeros(shape(value), tensor_dtype(tensor_type(value))))
            block.insert_op_before(constant, self.last)
            given = constant.result
        pairs = [(sender * self.ranks + k, receiver * self.ranks + k) for k in range(self.ranks)]
        op = ms.SendRecvOp(given, ranks=[a for a, _ in pairs], to=[b for _, b in pairs])
        if isinstance(value.owner, Operation):
            set_location(op, value.owner.location)
        block.insert_op_before(op, self.last)
        if stage == receiver:
            value.replace_all_uses_with(op.result)

    def _keep(self, arguments: Sequence[int], results: Sequence[int]) -> None:
        """Have the function these arguments and results alone, and the module the parameters that are read."""
        function, block = self.function, self.function.body.block
        for sides, kept in (("arg_attrs", arguments), ("res_attrs", results)):
            said = getattr(function, sides)
            if said is not None:
                setattr(function, sides, ArrayAttr([said.data[k] for k in kept]))
        for argument in reversed(block.args):
            if argument.index not in arguments:
                block.erase_arg(argument)
        function.update_function_type()
        symbols = {op.symbol for op in block.walk() if isinstance(op, GetParameterOp)}
        for op in list(self.module.ops):
            if isinstance(op, ParameterOp) and op.symbol not in symbols:
                op.detach()
                op.erase()


def _used(op: Operation) -> Iterator[SSAValue]:
    """What an operation reads, in its regions too, of what is outside of it."""
    yield from op.operands
    inside = {v for inner in op.walk() for v in inner.results if inner is not op}
    inside |= {a for region in op.regions for inner in region.blocks for a in inner.args}
    for region in op.regions:
        for inner in region.walk():
            inside |= {a for r in inner.regions for b in r.blocks for a in b.args}
            yield from (v for v in inner.operands if v not in inside)
