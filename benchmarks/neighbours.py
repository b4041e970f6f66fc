"""``python -m benchmarks.neighbours [LAYER]...``: layers whose sizes are one off, beside the even ones.

Even sizes fill vectors and register tiles; those beside them leave rests. The time of a unit of work (a multiply-add,
or an element) of each neighbour is shown against that of the even size: the CPU time of one thread, of calls
that nothing disturbs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod

import click
from rich.console import Console
from rich.table import Table

import msc
from benchmarks.layers import AddLayerNorm, Attention, Conv, GeluChain, Matmul, Softmax
from benchmarks.model import GraphModel

SECONDS, ROUNDS = 0.5, 10
"""How long one layer is called again and again, in how many turns."""

Size = tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer at even sizes; its work grows with each size, to the power that `powers` gives (1 if it gives none)."""

    make: Callable[..., GraphModel]
    sizes: tuple[Size, ...]
    powers: tuple[int, ...] = ()

    def work(self, size: Size) -> int:
        """Units of work of one call."""
        return prod(extent**power for extent, power in zip(size, self.powers or (1,) * len(size), strict=True))


def _conv3x3(inputs: int, outputs: int, size: int) -> GraphModel:
    return Conv(inputs, outputs, size, 3)


def _conv1x1(inputs: int, outputs: int, size: int) -> GraphModel:
    return Conv(inputs, outputs, size, 1)


LAYERS = {
    "matmul": Layer(Matmul, ((256,) * 3, (512,) * 3, (1024,) * 3, (16, 1024, 1024), (1024, 16, 1024), (512, 32, 512))),
    "conv3x3": Layer(_conv3x3, ((16, 16, 56), (64, 64, 56), (256, 256, 14), (128, 128, 8)), (1, 1, 2)),
    "conv1x1": Layer(_conv1x1, ((16, 64, 56), (64, 256, 56), (512, 512, 14), (512, 512, 8)), (1, 1, 2)),
    "attention": Layer(Attention, ((64,), (128,), (512,)), (2,)),
    "softmax": Layer(Softmax, ((1024, 1024), (1024, 64), (1024, 16))),
    "layernorm": Layer(AddLayerNorm, ((1024, 768), (1024, 64), (1024, 16))),
    "gelu": Layer(GeluChain, ((1024, 1024), (1024, 64), (1024, 32), (1024, 16))),
}


def microseconds(models: Sequence[GraphModel]) -> list[float]:
    """The CPU time of a call of each on one thread, which a tenth of the calls stay below.

    The least one may be too low: of a virtual processor, Linux takes what the host took away off a later call. The
    models take turns, so that they meet the same clock and the same neighbours on the host.
    """
    calls = [partial(msc.compile(model.onnx), *model.example().values()) for model in models]
    rounds = [[_nanoseconds(call) for call in calls] for _ in range(ROUNDS)]
    times = (sorted(chain.from_iterable(of_model)) for of_model in zip(*rounds, strict=True))
    return [found[len(found) // 10] / 1e3 for found in times]


def _nanoseconds(call: Callable[[], object]) -> list[int]:
    """The CPU times of calls one after the other; of a first one, which finds other data in the caches, none."""
    call()
    times: list[int] = []
    end = time.monotonic() + SECONDS / ROUNDS
    while not times or time.monotonic() < end:
        start = time.thread_time_ns()
        call()
        times.append(time.thread_time_ns() - start)
    return times


def neighbours(size: Size) -> Iterator[Size]:
    """Each of the sizes one less and one more, and all of them."""
    for step in (-1, 1):
        if len(size) > 1:
            for axis in range(len(size)):
                yield tuple(extent + step * (axis == position) for position, extent in enumerate(size))
        yield tuple(extent + step for extent in size)


@click.command()
@click.argument("layers", nargs=-1, type=click.Choice(list(LAYERS)))
def main(layers: tuple[str, ...]) -> None:
    """Print a row for each even size and each neighbour."""
    table = Table("layer", "size", "ps a unit", "x even", title="msc, one thread")
    for name in layers or LAYERS:
        layer = LAYERS[name]
        for size in layer.sizes:
            sizes = [size, *neighbours(size)]
            times = microseconds([layer.make(*each) for each in sizes])
            costs = [spent / layer.work(each) for spent, each in zip(times, sizes, strict=True)]
            for each, cost in zip(sizes, costs, strict=True):
                words = name, "x".join(map(str, each)), f"{cost * 1e6:.1f}", f"{cost / costs[0]:.2f}"
                table.add_row(*words, style="bold" if each == size else None)
    Console().print(table)


if __name__ == "__main__":
    main()
