"""Places in UB that values share over time."""

from __future__ import annotations

from msc.lowering.ascend.builder import KernelBuilder
from msc.lowering.ascend.vector_kernels.room import ConstantBuffer, Room
from msc.targets.davinci import davinci_target


def room() -> Room:
    return Room(KernelBuilder("k", davinci_target("ascend910b1"), "vector", 1, [("f32", 64)]))


def test_a_place_is_filled_for_who_needs_it_though_others_had_it_before() -> None:
    places = room()
    first = places.take("f32", 60)
    assert not places.fills
    places.give(first)
    again = places.take("f16", 100, fill=True)
    assert places.half_of(again) == places.half_of(first)
    assert places.fills == [ConstantBuffer(0, 256, "f32", 0.0)]
    places.give(again)
    places.take("f32", 33, fill=True)
    assert len(places.fills) == 1, "once is enough"
