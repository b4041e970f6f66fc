from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msc.lowering.cpu.memory.arena import (
    ALIGNMENT,
    Demand,
    Distances,
    Interval,
    aligned,
    lower_bound,
    overlaps,
    plan_arena,
)


def demand(size: int, first: int, last: int) -> Demand:
    return Demand(size, Interval(first, last))


def test_no_buffers_need_no_bytes() -> None:
    assert plan_arena([]).bytes == 0


def test_a_chain_ping_pongs_between_two_places() -> None:
    chain = [demand(1024, i, i + 1) for i in range(10)]
    plan = plan_arena(chain)
    assert plan.bytes == 2048
    assert set(plan.offsets) == {0, 1024}


def test_buffers_that_end_and_begin_at_one_step_are_apart() -> None:
    assert plan_arena([demand(64, 0, 1), demand(64, 1, 2)]).bytes == 128


def test_a_buffer_goes_into_the_tightest_gap() -> None:
    demands = [demand(1024, 0, 9), demand(512, 0, 4), demand(512, 0, 9), demand(256, 5, 9), demand(256, 5, 9)]
    assert plan_arena(demands).bytes == 2048


def test_empty_buffers_take_no_place() -> None:
    assert plan_arena([demand(0, 0, 9), demand(64, 0, 9)]).bytes == 64


def test_offsets_and_size_are_aligned() -> None:
    plan = plan_arena([demand(1, 0, 1), demand(1, 0, 1), demand(65, 0, 1)])
    assert all(offset % ALIGNMENT == 0 for offset in (*plan.offsets, plan.bytes))
    assert plan.bytes == 256


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Interval(3, 2)


def test_overlaps_are_found() -> None:
    demands = [demand(100, 0, 2), demand(100, 2, 3), demand(100, 4, 5)]
    assert list(overlaps(demands, [0, 64, 0])) == [(0, 1)]


def lasting(size: int, first: int, length: int) -> Demand:
    return demand(size, first, first + length)


DEMANDS = st.lists(
    st.builds(lasting, st.integers(0, 2000), st.integers(0, 30), st.integers(0, 12)),
    max_size=40,
)


@given(DEMANDS)
def test_plans_are_right_and_bounded(demands: list[Demand]) -> None:
    plan = plan_arena(demands)
    assert not list(overlaps(demands, plan.offsets))
    assert lower_bound(demands) <= plan.bytes <= sum(aligned(d.bytes) for d in demands)
    assert all(offset + d.bytes <= plan.bytes for offset, d in zip(plan.offsets, demands, strict=True) if d.bytes)


@given(DEMANDS)
def test_plans_are_reproducible(demands: list[Demand]) -> None:
    assert plan_arena(demands) == plan_arena(list(demands))


@given(DEMANDS)
def test_the_lower_bound_is_the_most_live_bytes(demands: list[Demand]) -> None:
    steps = range(50)
    live = (sum(aligned(d.bytes) for d in demands if d.live.first <= t <= d.live.last) for t in steps)
    assert lower_bound(demands) == max(live, default=0)


@given(DEMANDS, st.data())
def test_buffers_overlap_only_at_distances_that_are_allowed(demands: list[Demand], data: st.DataObject) -> None:
    pairs = [(i, j) for i, a in enumerate(demands) for j, b in enumerate(demands[:i]) if a.live.meets(b.live)]
    apart = {
        pair: Distances(data.draw(st.integers(-90, demands[pair[0]].bytes)), -demands[pair[1]].bytes)
        for pair in data.draw(st.lists(st.sampled_from(pairs), max_size=5) if pairs else st.just([]))
    }
    offsets = plan_arena(demands, 8, apart).offsets
    for i, j in overlaps(demands, offsets):
        distances = apart.get((j, i)) or apart.get((i, j))
        assert distances is not None
        assert ((offsets[i] - offsets[j]) if (j, i) in apart else (offsets[j] - offsets[i])) in distances


def test_what_lies_on_top_is_placed_earlier() -> None:
    chain = [demand(276, 0, 1), demand(282, 1, 2), demand(200, 2, 3), demand(184, 3, 4), demand(384, 4, 5)]
    assert plan_arena(chain, 1).bytes == 568
