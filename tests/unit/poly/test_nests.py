"""A nest runs the instances that isl's schedule has, in its order: what is proved of one holds for the other."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
from hypothesis import given, settings
from hypothesis import strategies as st

from msc.poly.compute import dims
from msc.poly.model import KernelModel
from msc.poly.nest import generate
from msc.poly.schedule_tree.nodes import Tree
from msc.poly.schedule_tree.parts import tile_counts
from msc.poly.schedule_tree.to_isl import to_isl
from msc.poly.schedule_tree.verify import verify
from msc.poly.valid_extents import Size
from tests.unit.poly.kernels import At, Point, array, executed, matmul_relu, pairs_of, read, statement
from tests.unit.poly.trees import tree


def in_time(model: KernelModel, schedule: Tree, sizes: Point) -> list[At]:
    """The instances of a call, in the order of isl's schedule."""
    made = to_isl(model, schedule).schedule
    values = (*sizes, *(count.eval(sizes, ()) for count in tile_counts(model, schedule).values()))
    names = [f"n{k}" for k in range(len(values))]
    facts = " and ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    call = isl.Set(f"[{', '.join(names)}] -> {{ : {facts} }}" if names else "{ : }")
    pieces: list[str] = []
    made.get_map().intersect_domain(made.get_domain()).intersect_params(call).project_out_all_params().foreach_map(
        lambda m: pieces.append(str(m.set_tuple_name(isl.dim_type.out, "S0")))
    )
    found = pairs_of(isl.UnionMap("{ " + "; ".join(piece.strip("{ }") for piece in pieces) + " }"))
    return [at for at, _ in sorted(found, key=lambda pair: pair[1])]


def run(model: KernelModel, schedule: Tree, sizes: Point) -> list[At]:
    """The instances that the nest of a tree runs in a call."""
    verify(model, schedule)
    values = (*sizes, *(count.eval(sizes, ()) for count in tile_counts(model, schedule).values()))
    return list(executed(generate(model, schedule), values))


MATMUL = matmul_relu(7, 10, 12)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_tiles_and_cuts_run_in_the_order_of_the_schedule(data: st.DataObject) -> None:
    m1, n1, k1 = (data.draw(st.integers(1, extent)) for extent in (7, 10, 12))
    m2, k2 = data.draw(st.integers(1, m1)), data.draw(st.integers(1, k1))
    at = data.draw(st.integers(1, 9))
    schedule = tree(f"""
        axis m 7: S0.0 S1.0 S2.0
        axis n 10: S0.1 S1.1 S2.1
        axis k 12: S1.2
        for m tile {m1}
          head n to {at}
            for n, m
              run S0
          tail n from {at}
            for m, n tile {n1}, n vector
              run S0
          for k tile {k1}
            for n tile {n1}, m tile {m2}
              for k tile {k2}, k, m unroll, n vector
                run S1
          for m, n
            run S2
    """)
    assert run(MATMUL, schedule, ()) == in_time(MATMUL, schedule, ())


def summed(ratio: int) -> KernelModel:
    """S0: y[i] = 0; S1: y[i] += x[i, j], for `ratio` i to each of as many as a call says, and j up to half of them."""
    i, j = dims(2)
    (size,) = dims(1)
    extents = (12 * ratio, 7)
    bounds = (size * ratio, (size + 1) // 2)
    first = replace(statement(extents[:1], 1, (i,), read(0, 1, i, 0)), bounds=bounds[:1])
    update = replace(statement(extents, 1, (i,), read(0, 2, i, j), "add"), bounds=bounds)
    arrays = (array(*extents, kind="input"), array(extents[0], kind="output"))
    return KernelModel(arrays, (first, update), ("sum",), (Size("rows", 1, 12),))


@settings(max_examples=40, deadline=None)
@given(
    ratio=st.sampled_from([1, 3]),
    tiles=st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 7)),
    size=st.integers(1, 12),
)
def test_open_axes_run_in_the_order_of_the_schedule(ratio: int, tiles: tuple[int, int, int], size: int) -> None:
    model, (outer, inner, block) = summed(ratio), tiles
    schedule = tree(f"""
        axis i {12 * ratio}: S0.0 S1.0
        axis j 7: S1.1
        for i tile {outer}
          for i
            run S0
          for j tile {block}
            for i tile {min(inner, outer)}, j, i unroll
              run S1
    """)
    assert run(model, schedule, (size,)) == in_time(model, schedule, (size,))
