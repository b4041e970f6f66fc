"""Which loops statements share, and when isl's scheduler is asked for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from msc.poly.compute import affine_map, dims
from msc.poly.dependences import Dependences, dependences
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.outer_band import SharedLoop, shared_loops
from msc.poly.scalar import Constant, Read
from msc.schedule.loops import sharing
from msc.schedule.loops.sharing import shared_band


def spread(image: int, windows: int) -> KernelModel:
    """What the gradient of a pooling does: zeros, and elements added to windows of 3 that overlap."""
    n, i, c, k = dims(4)
    arrays = (Array((4, windows, 64), "f32", "input"), Array((4, image, 64), "f32", "output"))
    zeros = KernelStatement((4, image, 64), ("n", "i", "c"), 1, affine_map(3, (n, i, c)), Constant(0.0, "f32"), None, 0)
    element = Read(0, affine_map(4, (n, i, c)), "f32")
    place = affine_map(4, (n, i * 2 + k, c))
    added = KernelStatement((4, windows, 64, 3), ("n", "o", "c", "k"), 1, place, element, "add", 0)
    return KernelModel(arrays, (zeros, added), ("spread",))


@pytest.mark.parametrize(("image", "windows", "times"), [(33, 16, 0), (16, 16, 1)])
def test_isl_is_asked_only_where_other_loops_run_as_often(
    image: int, windows: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[int]] = []

    def counted(model: KernelModel, deps: Dependences, statements: Sequence[int]) -> list[SharedLoop]:
        asked.append(statements)
        return shared_loops(model, deps, statements)

    monkeypatch.setattr(sharing, "shared_loops", counted)
    model = spread(image, windows)
    band = shared_band(model, dependences(model), (0, 1), [])
    assert [axis.name for axis in band] == ["n", "c"]
    assert len(asked) == times
