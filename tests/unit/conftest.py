"""What unit tests of the Python API share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import msc
from msc.frontend.modes import GRAPH_MODE, PYNATIVE_MODE


@pytest.fixture(params=[PYNATIVE_MODE, GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    """Both modes, one after the other, each set while the test runs."""
    with msc.set_context(mode=request.param):
        yield request.param


@pytest.fixture(autouse=True)
def _mode_is_kept() -> Iterator[None]:
    """A test that leaves another mode fails itself, not one that happens to run after it."""
    before = msc.get_context("mode")
    yield
    left = msc.get_context("mode")
    msc.set_context(mode=before)
    assert left == before
