"""Which kernels threads share, and along which loop."""

from __future__ import annotations

import pytest

from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Read, apply
from msc.poly.schedule_tree.moves import reorder
from msc.poly.schedule_tree.nodes import Axis, Tree, loops
from msc.schedule.loops.sharing import Group, initial
from msc.schedule.threads import NOWHERE, Sharing, Surroundings, shared
from msc.schedule.tiles.register_tiles import tiled
from msc.targets.catalogue import machine_named

TARGET = machine_named("x86-64-v4")
BAND = ("m", "n")


def product(rows: int, columns: int, depth: int, order: tuple[str, str] = BAND) -> tuple[KernelModel, Tree]:
    """A product of matrices in tiles of 8 rows and 32 columns."""
    m, n, k = dims(3)
    shapes = ((rows, depth), (depth, columns), (rows, columns))
    arrays = tuple(Array(shape, "f32", "input" if i < 2 else "output") for i, shape in enumerate(shapes))
    reads = (Read(i, affine_map(3, index), "f32") for i, index in enumerate(((m, k), (k, n))))
    statement = KernelStatement(
        (rows, columns, depth), ("m", "n", "k"), 2, affine_map(3, (m, n)), apply("mul", *reads), "add", 0
    )
    band = (Axis("m", rows, {0: 0}), Axis("n", columns, {0: 1}))
    tree = initial(band, [Group((0,), (Axis("k", depth, {0: 2}),))])
    if order != BAND:
        tree = reorder(tree, order)
    tree = tiled(tiled(tree, "n", 32, "vector"), "m", 8, "unroll")
    return KernelModel(arrays, (statement,), ("ms.matmul",)), tree


def shared_axes(model: KernelModel, tree: Tree, threads: int, around: Surroundings = NOWHERE) -> list[str]:
    """The axes of the loops that threads share."""
    found = shared(model, tree, BAND, TARGET, threads, [], around).tree
    return [loop.axis for loop in loops(found) if loop.mark == "parallel"]


@pytest.mark.parametrize(
    ("sizes", "loop"),
    [
        ((512, 512, 512), "m"),  # both have iterations enough: the outermost
        ((64, 1024, 64), "m"),  # eight iterations are enough for two threads
        ((64, 4096, 512), "n"),  # but all threads would read all columns, which no L2 holds
        ((48, 1024, 64), "m"),  # so are six, three for each
        ((40, 1024, 64), "n"),  # five are not
        ((24, 4096, 512), "n"),  # nor are three
        ((8, 4096, 512), "n"),  # one tile of rows cannot be shared
        ((24, 32, 64), None),  # less work than a team costs
        ((8, 32, 1 << 20), None),  # one tile
    ],
)
def test_a_loop_with_iterations_enough(sizes: tuple[int, int, int], loop: str | None) -> None:
    model, tree = product(*sizes)
    reasons: list[str] = []
    found = shared(model, tree, BAND, TARGET, 2, reasons).tree
    assert [each.axis for each in loops(found) if each.mark == "parallel"] == ([] if loop is None else [loop])
    assert all(each.mark != "parallel" for each in list(loops(found))[1:])
    assert bool(reasons) == (loop is not None)


def test_the_loop_that_moves_furthest_in_the_output() -> None:
    """Rows, though columns are outermost, so that the kernel after it finds its rows in its own cache."""
    assert shared_axes(*product(256, 256, 256, ("n", "m")), 2) == ["m"]


def test_less_must_be_saved_where_threads_wrote_what_is_read() -> None:
    model, tree = product(48, 512, 32)
    assert not shared_axes(model, tree, 2)
    assert shared_axes(model, tree, 2, Surroundings(follows=True))


def test_in_a_loop_what_is_new_must_be_fetched() -> None:
    """A step of a recurrent network: the same weights every time, and little else."""
    model, tree = product(8, 256, 512)
    assert not shared_axes(model, tree, 2)
    step, apart = Surroundings(kept=frozenset({1})), Surroundings(kept=frozenset())
    assert shared_axes(model, tree, 2, step)
    assert not shared_axes(model, tree, 2, apart)


def test_one_thread_shares_nothing() -> None:
    model, tree = product(4096, 64, 64)
    assert shared(model, tree, BAND, TARGET, 1, []) == Sharing(tree)


def test_a_decision_says_whether_it_depends_on_what_came_before() -> None:
    """Where it says that it does not, another process may decide before that is known."""
    said = dict[str, bool]()
    for name, sizes in {"much": (512, 512, 512), "little": (8, 32, 8), "between": (48, 512, 32)}.items():
        model, tree = product(*sizes)
        first, other = (shared(model, tree, BAND, TARGET, 2, [], Surroundings(each)) for each in (False, True))
        assert first.either == other.either == (first.tree == other.tree)
        said[name] = first.either
    assert said == {"much": True, "little": True, "between": False}
