"""Pass `schedule-kernels`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from msc.analysis.kernel_model import kernel_model
from msc.analysis.kernels import kernels_in
from msc.analysis.properties import KERNELS, SCHEDULED, SHAPES_KNOWN, UNSCHEDULED
from msc.analysis.target import Target, target_of
from msc.dialects import gk
from msc.dialects.gk.attributes import GK_SCHEDULE, GK_SCHEDULE_REASONS
from msc.dialects.ms.base import ViewOp
from msc.dialects.ms.slices import ExtractSliceOp
from msc.dialects.ms.warnings import keep_warnings
from msc.ir.contracts import Contract
from msc.ir.locations import source_location
from msc.poly.dependences import Dependences, dependences
from msc.poly.kernel_text import kernel_lines
from msc.poly.lanes import check_lanes
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.overwriting import check_aliases
from msc.poly.remembered import remembered
from msc.poly.requests import requests
from msc.poly.schedule_tree.nodes import ScheduleError, Tree, all_blocks, loops
from msc.poly.schedule_tree.shared_proofs import prove_kind
from msc.poly.schedule_tree.text import from_lines, line_of, to_lines
from msc.poly.schedule_tree.verify import verify
from msc.poly.storage import storage
from msc.schedule.known_loops import KnownLoops
from msc.schedule.matrix_units import unit_schedule
from msc.schedule.scheduled_model import scheduled_model
from msc.schedule.storage.capacity import check_capacity
from msc.schedule.strategy import Decision, decide, plain
from msc.schedule.threads import Surroundings
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.forked import results
from msc.support.progress import step
from msc.targets.abilities import PLAIN, Abilities
from msc.targets.machine import Machine

_SHOWN_STATEMENTS = 12
"""Statements that an error shows of a kernel whose schedule is refused."""


_REFUSED = "the schedule that was chosen is not legal"
STRICT = "MSC_STRICT"
"""Environment variable that the tests set: a strategy that chooses an illegal schedule is an internal error."""


@dataclass(frozen=True)
class ScheduleKernels(ModulePass):
    """Decide a schedule for every kernel, for the target of the module.

    Takes `gk.kernel`s of basic operations with static shapes. Gives each an attribute `gk.schedule` (a tree, see
    `msc.poly.schedule_tree`) and `gk.schedule_reasons`. A schedule that is already there (written by a person or by
    tuning) is kept if it is legal, and refused with an error if it is not. Changes nothing else.

    With `plain=true` statements run one after the other, each in its own loops; with `blocks=false` each reduction is
    one loop; with `prefetches=false` no kernel requests anything ahead; with `sums=false` each sum is one chain; with
    `units=false` no instruction takes several terms of a product.
    """

    name = "schedule-kernels"
    contract = Contract(
        requires=(SHAPES_KNOWN, KERNELS),
        ensures=(SCHEDULED,),
        breaks=(UNSCHEDULED,),
        runs_after={
            "apply-tuning": "an existing schedule is proved and kept",
            "infer-valid-extents": "loops end at the valid extents",
            "compute-at-consumers": "the loop that producer and consumer share is outermost",
        },
    )
    plain: bool = False
    blocks: bool = True
    prefetches: bool = True
    sums: bool = True
    units: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        decide_one = partial(self._decide, target, KnownLoops.taken(op, target.machine, target.threads))
        kernels = kernels_in(op)
        decisions = _expected(kernels, decide_one)
        for number, kernel in enumerate(kernels, 1):
            step(f"schedule-kernels: {number} of {len(kernels)}, {kernel.label.data}")
            _schedule(kernel, decide_one, decisions)
        _note_slow(op, kernels)

    def _decide(self, target: Target, known: KnownLoops, model: KernelModel, around: Surroundings) -> Decision:
        if self.plain:
            return Decision(plain(model, dependences(model), target.machine), ["schedules are turned off"])
        chosen = partial(
            decide, blocks=self.blocks, prefetches=self.prefetches, sums=self.sums, units=self.units, loops=known.loops
        )
        return _decide(model, target, around, chosen)


_Decide: TypeAlias = Callable[[KernelModel, Surroundings], Decision]
_Key: TypeAlias = tuple[str, Surroundings]


def _expected(kernels: Sequence[gk.KernelOp], decide_one: _Decide) -> dict[_Key, Decision]:
    """Decisions on kernels, made on several processors, whether or not threads share what comes before them.

    A decision depends on nothing but its key, so it is the same wherever it is made. Those that fail are left out.
    """
    first: dict[_Key, int] = {}
    undecided = [kernel for kernel in kernels if kernel.schedule is None]

    def decided(kernel: gk.KernelOp) -> list[list[str]]:
        model, around = kernel_model(kernel), _surroundings(kernel)
        first = decide_one(model, around)
        both = [first] if first.either else [first, decide_one(model, around.otherwise)]
        return [text for each in both for text in (to_lines(each.tree), each.reasons)]

    distinct = (k for k, kernel in enumerate(undecided) if first.setdefault(_key(kernel), k) == k)
    found = results(decided, undecided, distinct)
    return dict(each for k, texts in found.items() for each in _read(_key(undecided[k]), texts))


def _key(kernel: gk.KernelOp) -> _Key:
    """All that the decision on a kernel depends on."""
    return kernel_model(kernel).structure, _surroundings(kernel)


def _read(key: _Key, texts: Sequence[list[str]]) -> Iterator[tuple[_Key, Decision]]:
    """The decisions that texts tell of, for what stands around the kernel and for `otherwise`."""
    structure, around = key
    found = [Decision(from_lines(lines), reasons) for lines, reasons in zip(texts[::2], texts[1::2], strict=True)]
    return zip((key, (structure, around.otherwise)), (found[0], found[-1]), strict=True)


def _schedule(kernel: gk.KernelOp, decide_one: _Decide, decisions: dict[_Key, Decision]) -> None:
    """Kernels that compute the same, among the same, share one decision."""
    if kernel.schedule is not None:
        check_given(kernel)
        return
    model, key = kernel_model(kernel), _key(kernel)
    if key not in decisions:
        decisions[key] = decide_one(model, key[1])
    kernel.attributes[GK_SCHEDULE] = gk.ScheduleAttr(decisions[key].tree)
    kernel.attributes[GK_SCHEDULE_REASONS] = _strings(decisions[key].reasons)
    _chosen(model).add(decisions[key].tree)


def _surroundings(kernel: gk.KernelOp) -> Surroundings:
    loop = _loop_around(kernel)
    if loop is None:
        return Surroundings(_follows(kernel))
    kept = (k for k, operand in enumerate(kernel.operands) if not loop.is_ancestor(operand.owner))
    return Surroundings(_follows(kernel), frozenset(kept))


def _loop_around(kernel: gk.KernelOp) -> Operation | None:
    op = kernel.parent_op()
    while op is not None and not isinstance(op, scf.ForOp | scf.WhileOp):
        op = op.parent_op()
    return op


def _follows(kernel: gk.KernelOp) -> bool:
    """Whether threads that share a kernel wrote some of what this one reads, seen through views and slices."""
    owners = [operand.owner for operand in kernel.operands]
    while owners:
        owner = owners.pop()
        if isinstance(owner, gk.KernelOp):
            if owner.schedule is not None and any(loop.mark == "parallel" for loop in loops(owner.schedule.data)):
                return True
        elif isinstance(owner, ViewOp | ExtractSliceOp):
            owners += [operand.owner for operand in owner.operands]
    return False


def _without_limits(machine: Machine) -> Abilities:
    """The abilities of a machine whose places have any size: those of the strategy have room (`storage`)."""
    return replace(PLAIN, units=machine.abilities.units)


def _decide(model: KernelModel, target: Target, around: Surroundings, chosen: Callable[..., Decision]) -> Decision:
    deps, machine = dependences(model), target.machine
    on_unit = unit_schedule(model, deps, machine)
    abilities = _without_limits(machine) if on_unit is None else machine.abilities
    if on_unit is None:
        decision = chosen(model, deps, machine, target.threads, around)
    else:
        decision = Decision(on_unit[0], [on_unit[1]])
    problem = illegal(model, deps, decision.tree, abilities)
    if problem is None:
        return decision
    text = to_lines(decision.tree)
    problem = illegal(model, deps, from_lines(text), abilities) or problem
    if os.environ.get(STRICT):
        message = f"the schedule chosen for {', '.join(model.operations)} is not legal: {problem}"
        raise MscError(Diagnostic("MSC0900", message, notes=tuple(text)))
    reasons = [*decision.reasons, f"{_REFUSED}: {problem}; a plain schedule is used"]
    return Decision(plain(model, deps, machine), reasons, decision.either)


def _note_slow(op: ModuleOp, kernels: Sequence[gk.KernelOp]) -> None:
    """Keep with the module which kernels run without the schedule that was chosen for them: artifacts tell of it."""
    slow = ((kernel, reason) for kernel in kernels for reason in _reasons(kernel) if reason.startswith(_REFUSED))
    keep_warnings(
        op, (f"kernel {kernel.label.data} is slow, without vectors, tiles and threads: {why}" for kernel, why in slow)
    )


def illegal(model: KernelModel, deps: Dependences, tree: Tree, abilities: Abilities = PLAIN) -> ScheduleError | None:
    """Why a tree does not fit its kernel and machine, or breaks a dependence; None for one that isl proves."""
    try:
        verify(model, tree, abilities)
        prove_kind(model, deps, tree)
        check_capacity(model, tree, abilities)
        if abilities.lanes:
            check_lanes(model, tree)
        if any(block.prefetches for block in all_blocks(tree.body)):
            requests(model, tree, generate(model, tree))
    except ScheduleError as problem:
        return problem
    return None


def misplaced(model: KernelModel, tree: Tree) -> ScheduleError | None:
    """Why a tree that isl proves places an array where it cannot be stored. Those of the strategy can (`stored`)."""
    try:
        storage(model, tree, generate(model, tree))
        check_aliases(model, tree)
    except ScheduleError as problem:
        return problem
    return None


@remembered
def _chosen(model: KernelModel) -> set[Tree]:
    """The trees that `schedule-kernels` chose for kernels of a model, which are proved."""
    del model
    return set()


def is_chosen(kernel: gk.KernelOp) -> bool:
    """Whether `schedule-kernels` chose the schedule that a kernel carries, in this process."""
    return schedule_of(kernel) in _chosen(kernel_model(kernel))


def check_given(kernel: gk.KernelOp) -> None:
    """Raise MSC0408 unless the schedule that a kernel carries is one for it, and isl proves it."""
    schedule, model = kernel.schedule, scheduled_model(kernel)
    problem = ScheduleError("it is no schedule")
    if schedule is not None:
        problem = illegal(model, dependences(model), schedule.data, target_of(kernel).cores.abilities)
        if not target_of(kernel).accelerator:
            problem = problem or misplaced(model, schedule.data)
    if problem is None:
        return
    line = line_of(schedule.data, problem.line) if schedule is not None else None
    statements = kernel_lines(model)
    raise MscError(
        Diagnostic(
            "MSC0408",
            f"kernel {kernel.label.data!r}: its schedule cannot run: {problem}",
            source_location(kernel),
            notes=(
                *([] if line is None else [f"line {problem.line} of the schedule is '{line}'"]),
                *statements[:_SHOWN_STATEMENTS],
                *(["..."] if len(statements) > _SHOWN_STATEMENTS else []),
            ),
            help="remove the attribute, and msc chooses a schedule",
        )
    )


def schedule_of(kernel: gk.KernelOp) -> Tree:
    """The schedule that a kernel carries, which it must have by now."""
    assert kernel.schedule is not None
    return kernel.schedule.data


def _reasons(kernel: gk.KernelOp) -> Sequence[str]:
    found = kernel.attributes.get(GK_SCHEDULE_REASONS)
    return [each.data for each in cast("ArrayAttr[StringAttr]", found)] if isinstance(found, ArrayAttr) else []


def _strings(lines: list[str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(line) for line in lines])
