"""The schedule of a pipeline: which stage computes which micro-batch when, simulated from the order that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msc.planner.step import Schedule

Task: TypeAlias = tuple[bool, int, int]
"""Whether it is a backward pass, the micro-batch, and the part of the model."""


@dataclass(frozen=True)
class PipelineEvent:
    """A pass of one micro-batch through one part of the model on one stage."""

    stage: int
    backward: bool
    micro_batch: int
    part: int
    start: float
    end: float


def order(schedule: Schedule, stage: int, stages: int, micro_batches: int, chunks: int = 1) -> list[Task]:
    """The order in which a stage computes; part `c * stages + stage` of the model is its chunk c.

    The interleaved order is Megatron-LM's: `stages` micro-batches go through a chunk before the next has its turn.
    """
    count = micro_batches * chunks
    forward = [_task(False, k, stage, stages, chunks, micro_batches) for k in range(count)]
    backward = [_task(True, k, stage, stages, chunks, micro_batches) for k in range(count)]
    if schedule == "gpipe":
        return forward + backward
    ahead = stages - 1 - stage
    if chunks > 1:
        ahead = 2 * ahead + (chunks - 1) * stages
    ahead = min(count, ahead)
    turns = forward[:ahead]
    for i in range(count - ahead):
        turns += [forward[ahead + i], backward[i]]
    return turns + backward[count - ahead :]


def _task(backward: bool, turn: int, stage: int, stages: int, chunks: int, micro_batches: int) -> Task:
    if chunks == 1:
        return backward, turn, stage
    group, within = divmod(turn, stages * chunks)
    size = min(stages, micro_batches - group * stages)  # the last group may have fewer micro-batches
    chunk, micro = divmod(within, size)
    return backward, group * stages + micro, (chunks - 1 - chunk if backward else chunk) * stages + stage


def simulate(
    schedule: Schedule, forward: Sequence[float], backward: Sequence[float], micro_batches: int, chunks: int = 1,
    message: float = 0.0,
) -> list[PipelineEvent]:  # fmt: skip
    """The events of a step; `forward` and `backward` have the seconds of each stage for one micro-batch.

    `message` is the time from one stage to the next.
    """
    stages = len(forward)
    waiting = [order(schedule, stage, stages, micro_batches, chunks) for stage in range(stages)]
    places, free = [0] * stages, [0.0] * stages
    ended: dict[Task, float] = {}
    last = stages * chunks - 1
    events: list[PipelineEvent] = []
    while True:
        moved = False
        for stage in range(stages):
            while places[stage] < len(waiting[stage]):
                task = waiting[stage][places[stage]]
                before = _needed(task, last)
                if any(each not in ended for each in before):
                    break
                ready = max((ended[each] + (message if each[2] != task[2] else 0.0) for each in before), default=0.0)
                start = max(free[stage], ready)
                free[stage] = start + (backward if task[0] else forward)[stage] / chunks
                ended[task] = free[stage]
                events.append(PipelineEvent(stage, *task, start, free[stage]))
                places[stage], moved = places[stage] + 1, True
        if not moved:
            break
    assert sum(places) == sum(map(len, waiting)), "the order of a schedule waits for itself"
    return events


def _needed(task: Task, last: int) -> list[Task]:
    backward, micro, part = task
    if not backward:
        return [(False, micro, part - 1)] if part else []
    return [(False, micro, part), *([(True, micro, part + 1)] if part < last else [])]


def picture(events: Sequence[PipelineEvent], width: int = 100) -> str:
    """The schedule as text: a line for each stage, digits for forward passes, letters for backward ones, dots idle."""
    end = max((event.end for event in events), default=0.0)
    rows: list[str] = []
    for stage in range(1 + max((event.stage for event in events), default=-1)):
        row = ["."] * width
        for event in events:
            if event.stage == stage and end:
                mark = chr(ord("a") + event.micro_batch % 26) if event.backward else str(event.micro_batch % 10)
                for place in range(int(event.start / end * width), max(1, int(event.end / end * width))):
                    row[place] = mark
        rows.append(f"  stage {stage:<3} {''.join(row)}")
    return "\n".join(rows)
