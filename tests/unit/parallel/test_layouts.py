"""Meshes and layouts: which part of a tensor each rank has."""

import itertools

import numpy as np
import pytest

from msc.parallel.layouts import Layout
from msc.parallel.mesh import Mesh
from msc.support.diagnostics import MscError


def test_ranks_count_the_last_axis_fastest() -> None:
    mesh = Mesh.parse("dp=2, tp=4")
    assert str(mesh) == "dp=2,tp=4"
    assert mesh.size == 8
    assert [mesh.rank(mesh.coordinates(rank)) for rank in range(8)] == list(range(8))
    assert mesh.coordinates(5) == {"dp": 1, "tp": 1}
    assert mesh.groups(["tp"]) == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert mesh.groups(["dp"]) == ((0, 4), (1, 5), (2, 6), (3, 7))


def test_strategy_of_mindspore() -> None:
    """[[2, 1], [1, 4]] on 8 devices: 0-3 have X0, 4-7 X1; {0, 4} have W0, {1, 5} W1, {2, 6} W2, {3, 7} W3."""
    mesh = Mesh.of(x=2, y=4)
    x, w = Layout.from_tensor_map(mesh, [1, -1]), Layout.from_tensor_map(mesh, [-1, 0])
    assert (str(x), str(w)) == ("[x, _]", "[_, y]")
    assert [x.slices((8, 6), rank)[0].start for rank in range(8)] == [0] * 4 + [4] * 4
    assert [w.slices((6, 8), rank)[1].start for rank in range(8)] == [0, 2, 4, 6] * 2
    assert x.tensor_map == (1, -1)
    assert x.copies == 4


@pytest.mark.parametrize("text", ["[]", "[a]", "[_, b.a]", "[a, _] sum(b)", "[_] max(a, b)"])
def test_text_gives_the_layout_back(text: str) -> None:
    assert str(Layout.parse(Mesh.of(a=2, b=3), text)) == text


def test_slices_cover_the_tensor_as_often_as_there_are_copies() -> None:
    mesh = Mesh.of(a=2, b=3)
    for cuts in itertools.product(["_", "a"], ["_", "b"]):
        layout = Layout.parse(mesh, f"[{', '.join(cuts)}]")
        count = np.zeros((4, 6), int)
        for rank in range(mesh.size):
            count[layout.slices((4, 6), rank)] += 1
        assert (count == layout.copies).all()


@pytest.mark.parametrize("text", ["dp", "dp=0", "dp=2,dp=2", "2=dp"])
def test_no_mesh(text: str) -> None:
    with pytest.raises(MscError, match="MSC1100"):
        Mesh.parse(text)


@pytest.mark.parametrize("text", ["[a, a]", "[a] sum(a)", "a, b", "[a] mean(b)"])
def test_no_layout(text: str) -> None:
    with pytest.raises(MscError, match="MSC1101"):
        Layout.parse(Mesh.of(a=2, b=2), text)


def test_dimension_that_does_not_divide() -> None:
    with pytest.raises(MscError, match="MSC1101"):
        Layout.parse(Mesh.of(a=2), "[a]").local_shape((3,))
