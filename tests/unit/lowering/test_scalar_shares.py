"""Scalar units share loops only where no core needs what another writes."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineMap

from msc.poly.compute import dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Constant, Read
from msc.schedule.scalar_loops import share_of
from msc.targets.davinci import DavinciTarget, davinci_target

D = dims(2)
ROWS, TURNED = AffineMap(2, 0, D), AffineMap(2, 0, (D[1], D[0]))
SHIFTED = AffineMap(2, 0, (D[0], D[1] + 1))
SHAPE = (96, 64)


@pytest.fixture(scope="module")
def target() -> DavinciTarget:
    return davinci_target("ascend910b1")


def _model(write: AffineMap, read: AffineMap, shape: tuple[int, ...] = SHAPE, dtype: str = "f32") -> KernelModel:
    """An input copied to an internal array, which a second statement reads at `read` and writes at `write`."""
    arrays = (Array((97, 112), dtype, "input"), Array((96, 112), dtype, "internal"), Array(shape, dtype, "output"))
    first = KernelStatement((96, 112), ("i", "j"), 1, ROWS, Read(0, ROWS, dtype), None, 0)
    body = Apply("add", (Read(1, read, dtype), Constant(1.0, dtype)))
    return KernelModel(arrays, (first, KernelStatement(SHAPE, ("i", "j"), 2, write, body, None, 1)), ("a", "b"))


def test_rows_are_shared(target: DavinciTarget) -> None:
    share = share_of(_model(ROWS, ROWS), 1e7, target)
    assert share.cores == 48
    assert share.part == 2 / 96


def test_little_work_stays_on_one_core(target: DavinciTarget) -> None:
    assert share_of(_model(ROWS, ROWS), 700.0, target).cores == 1


def test_a_shift_along_a_dimension_forbids_it_but_no_other(target: DavinciTarget) -> None:
    assert share_of(_model(ROWS, SHIFTED), 1e7, target).cores == 48
    down = AffineMap(2, 0, (D[0], D[0]))
    both = AffineMap(2, 0, (D[1], D[0] + 1))
    assert share_of(_model(ROWS, down), 1e7, target).cores == 48
    assert share_of(_model(ROWS, both), 1e7, target).cores == 1


def test_dimensions_of_different_extents_are_not_shared(target: DavinciTarget) -> None:
    assert share_of(_model(ROWS, TURNED), 1e7, target).cores == 1


def test_cores_write_whole_cache_lines(target: DavinciTarget) -> None:
    """Rows of 64 bytes may be shared one by one, rows of 112 bytes only four at a time."""
    share = share_of(_model(ROWS, ROWS, dtype="i8"), 1e7, target)
    assert share.cores == 24
    assert share.part == 4 / 96
