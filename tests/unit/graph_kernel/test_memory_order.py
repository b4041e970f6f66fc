"""Orders of steps by the bytes that are live at a time."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from msc.graph_kernel.memory_order import BufferUse, KernelSequence


@st.composite
def programs(draw: st.DrawFn) -> KernelSequence:
    """Each step makes a buffer of its own and reads some of those before."""
    count = draw(st.integers(1, 5))
    reads = [tuple(sorted(draw(st.sets(st.integers(0, k - 1), max_size=3)))) if k else () for k in range(count)]
    steps = [BufferUse((k,), read, read, draw(st.integers(0, 5)) == 0) for k, read in enumerate(reads)]
    return KernelSequence(steps, [draw(st.integers(0, 9)) for _ in range(count)])


def _is_legal(program: KernelSequence, order: tuple[int, ...]) -> bool:
    fixed = [n for n in order if program.steps[n].fixed]
    ready = all(set(program.steps[n].after) <= set(order[:k]) for k, n in enumerate(order))
    return ready and fixed == sorted(fixed)


@given(programs())
def test_the_order_is_legal_and_no_worse(program: KernelSequence) -> None:
    found = tuple(program.best_order())
    assert sorted(found) == list(range(len(program.steps)))
    assert _is_legal(program, found)
    peaks = [program.peak(order) for order in permutations(range(len(program.steps))) if _is_legal(program, order)]
    assert min(peaks) <= program.peak(found) <= program.peak(range(len(program.steps)))


def test_what_is_large_sinks_to_its_reader() -> None:
    """Ten transposed filters, made at once, are made one after the other."""
    filters = [BufferUse((k,), (), ()) for k in range(10)]
    chain = [BufferUse((10 + k,), (k, *((9 + k,) if k else ())), (k, *((9 + k,) if k else ()))) for k in range(10)]
    program = KernelSequence([*filters, *chain], [100] * 10 + [1] * 10)
    assert program.peak(range(20)) == 1001
    assert program.peak(program.best_order()) == 102


def test_what_frees_memory_rises_to_what_it_needs() -> None:
    """Updates at the end that gradients wait for stand behind these; a large gap of places is made new numbers for."""
    gradients = [BufferUse((k,), (), (k - 1,) if k else (), fixed=True) for k in range(80)]
    updates = [BufferUse((), (k,), (k,)) for k in range(80)]
    program = KernelSequence([*gradients, *updates], [10] * 80)
    assert program.peak(range(160)) == 800
    assert program.peak(program.best_order()) == 10


def test_many_steps_sink_to_one_place() -> None:
    """Two hundred steps sink to one: more than a float halves the space between two places."""
    count = 200
    reads = tuple(range(count))
    making = [BufferUse((k,), (), ()) for k in range(count)]
    large = [BufferUse((count,), (), (), fixed=True), BufferUse((), (count,), (count,), fixed=True)]
    program = KernelSequence([*making, *large, BufferUse((), reads, reads, fixed=True)], [1] * count + [500])
    found = program.best_order()
    assert program.peak(found) == 500
    assert found[:2] == [count, count + 1]
    assert sorted(found[2:-1]) == list(range(count))
