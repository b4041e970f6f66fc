"""``python -m benchmarks.neighbours``: products whose sizes are one off, beside the even ones.

Even sizes fill vectors and register tiles; those beside them leave rests. The time of a multiply-add of each
neighbour is shown against that of the even size: the CPU time of one thread, the least of many calls.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

import msc
from benchmarks.layers import Matmul

SIZES = ((256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (16, 1024, 1024), (1024, 16, 1024))
SECONDS = 0.5
"""How long one product is called again and again."""

Size = tuple[int, int, int]


def microseconds(size: Size) -> float:
    """The least CPU time of a call of a product `[m, k] x [k, n]` of two inputs."""
    model = Matmul(*size)
    run, operands = msc.compile(model.onnx), list(model.example().values())
    run(*operands)
    times: list[int] = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        start = time.thread_time_ns()
        run(*operands)
        times.append(time.thread_time_ns() - start)
    return min(times) / 1e3


def neighbours(size: Size) -> Iterator[Size]:
    """Each of the sizes one less and one more, and all of them."""
    for step in (-1, 1):
        for axis in range(3):
            m, n, k = (extent + step * (axis == position) for position, extent in enumerate(size))
            yield m, n, k
        m, n, k = (extent + step for extent in size)
        yield m, n, k


def per_multiply_add(size: Size) -> float:
    m, n, k = size
    return microseconds(size) / (m * n * k)


def main() -> None:
    """Print a row for each even size and each neighbour."""
    table = Table("m x n x k", "ps a multiply-add", "x even", title="msc, one thread")
    for size in SIZES:
        even = per_multiply_add(size)
        table.add_row("x".join(map(str, size)), f"{even * 1e6:.1f}", "1", style="bold")
        for other in neighbours(size):
            cost = per_multiply_add(other)
            table.add_row("x".join(map(str, other)), f"{cost * 1e6:.1f}", f"{cost / even:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
