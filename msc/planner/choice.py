"""The choice of a plan: what a person leaves out is found, and what lost is kept with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from msc.planner.cluster import Cluster
from msc.planner.step import Degrees, Plan, Schedule, StepCost, step_cost
from msc.planner.transformer import Gpt, Recompute
from msc.support.diagnostics import Diagnostic, MscError
from msc.support.wording import memory_text, seconds_text

_SCHEDULES: tuple[Schedule, ...] = ("1f1b", "interleaved", "gpipe")
_RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")
_KEPT = 8
"""How many of the plans that lost are told."""


@dataclass(frozen=True)
class Wish:
    """What a person asks for; what is None is found."""

    global_batch: int
    devices: int
    mesh: Degrees | None = None
    micro_batch: int | None = None
    schedule: Schedule | None = None
    chunks: int | None = None
    recompute: Recompute | None = None
    optimizer_level: int | None = None
    sequence_parallel: bool | None = None
    overlap: bool = True
    any_memory: bool = False
    """Whether a plan that needs more memory than there is will do, if it is the only one."""


@dataclass(frozen=True)
class Priced:
    """A plan and its cost."""

    plan: Plan
    cost: StepCost


@dataclass(frozen=True)
class Choice:
    """The fastest plan that fits, and the best of other meshes with why they lost."""

    best: Priced
    lost: list[tuple[Priced, str]]
    tried: int


def choose(model: Gpt, cluster: Cluster, wish: Wish) -> Choice:
    """The fastest plan whose memory fits.

    Raises MSC1123 if no mesh divides the model and the batch, and MSC1122, with the breakdown of what comes nearest,
    if none fits.
    """
    if wish.devices > cluster.devices:
        message = f"{wish.devices} devices are wanted, and {cluster.name} has {cluster.devices}"
        raise MscError(Diagnostic("MSC1123", message, help="give a mesh of fewer devices, or a larger cluster"))
    by_mesh: dict[Degrees, Priced] = {}
    over: dict[Degrees, Priced] = {}
    tried = 0
    for plan in _plans(model, cluster, wish):
        tried += 1
        priced = Priced(plan, step_cost(model, cluster, plan))
        if priced.cost.peak <= cluster.free_memory:
            if plan.mesh not in by_mesh or priced.cost.step < by_mesh[plan.mesh].cost.step:
                by_mesh[plan.mesh] = priced
        elif plan.mesh not in over or priced.cost.peak < over[plan.mesh].cost.peak:
            over[plan.mesh] = priced
    if not tried:
        raise MscError(Diagnostic("MSC1123", _undivided(model, wish), help="a batch divides by dp times micro_batch"))
    if not by_mesh:
        nearest = min(over.values(), key=lambda each: each.cost.peak)
        if not wish.any_memory:
            raise over_memory(nearest.cost.memory, cluster, f"with {nearest.plan}")
        return Choice(nearest, [], tried)
    ranked = sorted(by_mesh.values(), key=lambda each: each.cost.step)
    best = ranked[0]
    lost = [(each, _why_slower(each.cost, best.cost)) for each in ranked[1:]]
    lost += [
        (each, f"needs {memory_text(each.cost.peak)} of {memory_text(cluster.free_memory)}")
        for mesh, each in sorted(over.items(), key=lambda item: item[1].cost.peak)
        if mesh not in by_mesh
    ]
    return Choice(best, lost[:_KEPT], tried)


def over_memory(memory: dict[str, float], cluster: Cluster, how: str) -> MscError:
    """MSC1122: what needs more memory than a device has, by cause."""
    parts = ", ".join(f"{cause} {memory_text(bytes_)}" for cause, bytes_ in memory.items() if bytes_)
    total = memory_text(sum(memory.values()))
    message = f"a device of {cluster.name} has {memory_text(cluster.free_memory)}, and {how} it needs {total}: {parts}"
    advice = "more devices, optimizer_level 1 to 3, recompute, a smaller micro-batch, or parameters on the host"
    return MscError(Diagnostic("MSC1122", message, help=advice))


def _why_slower(cost: StepCost, best: StepCost) -> str:
    causes = {cause: seconds - best.seconds.get(cause, 0.0) for cause, seconds in cost.seconds.items()}
    worst = max(causes, key=lambda cause: causes[cause])
    more = cost.step / best.step - 1
    return f"{100 * more:.0f} % slower: {worst} takes {seconds_text(cost.seconds[worst])}"


def _undivided(model: Gpt, wish: Wish) -> str:
    if wish.mesh is None:
        return f"no mesh of {wish.devices} devices divides {model.heads} heads and a batch of {wish.global_batch}"
    micro = f" and micro-batches of {wish.micro_batch}" if wish.micro_batch else ""
    batch = f"no batch of {wish.global_batch}{micro}"
    return f"the mesh {wish.mesh} divides {batch}, {model.hidden} features, {model.layers} layers"


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def meshes(model: Gpt, cluster: Cluster, devices: int, batch: int) -> Iterator[Degrees]:
    """Meshes that use all devices: tensor parallelism divides the heads and stays within the nearest link."""
    for tp in _divisors(devices):
        if tp > cluster.links[0].size or model.heads % tp or model.hidden % tp:
            continue
        for pp in _divisors(devices // tp):
            dp = devices // (tp * pp)
            if pp <= model.layers and model.layers % pp == 0 and batch % dp == 0:
                yield Degrees(dp, tp, pp, ep=_experts(model, dp))


def _experts(model: Gpt, dp: int) -> int:
    return max((d for d in _divisors(model.experts) if dp % d == 0), default=1)


def _plans(model: Gpt, cluster: Cluster, wish: Wish) -> Iterator[Plan]:
    found = [wish.mesh] if wish.mesh else meshes(model, cluster, wish.devices, wish.global_batch)
    for mesh in found:
        if wish.global_batch % mesh.dp or mesh.pp > model.layers or mesh.tp > model.hidden:
            continue
        replica = wish.global_batch // mesh.dp
        sizes = [wish.micro_batch] if wish.micro_batch else [d for d in _divisors(replica) if d <= 64]
        for size in sizes:
            if replica % size == 0:
                yield from _variants(model, Plan(mesh, wish.global_batch, size, overlap=wish.overlap), wish)


def _variants(model: Gpt, plan: Plan, wish: Wish) -> Iterator[Plan]:
    levels = range(4) if wish.optimizer_level is None and plan.mesh.data.ranks > 1 else [wish.optimizer_level or 0]
    sequence = [plan.mesh.tp > 1] if wish.sequence_parallel is None else [wish.sequence_parallel]
    for schedule, chunks in _pipelines(model, plan, wish):
        for recompute in [wish.recompute] if wish.recompute else _RECOMPUTE:
            for level in levels:
                yield replace(
                    plan,
                    schedule=schedule,
                    chunks=chunks,
                    recompute=recompute,
                    optimizer_level=level,
                    sequence_parallel=sequence[0],
                )


def _pipelines(model: Gpt, plan: Plan, wish: Wish) -> Iterator[tuple[Schedule, int]]:
    if plan.mesh.pp == 1:
        yield wish.schedule or "1f1b", 1
        return
    layers = -(-model.layers // plan.mesh.pp)
    schedules: tuple[Schedule, ...] = (wish.schedule,) if wish.schedule else _SCHEDULES
    for schedule in schedules:
        if schedule != "interleaved":
            yield schedule, 1
            continue
        if not wish.schedule and plan.micro_batches % plan.mesh.pp:
            continue  # stages would wait for the micro-batches that the last group lacks
        asked = [wish.chunks] if wish.chunks else _divisors(layers)[1:] or ([1] if wish.schedule else [])
        for chunks in asked:
            yield schedule, chunks
