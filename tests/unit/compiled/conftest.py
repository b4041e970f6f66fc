"""Whether tests may take long: see effort.py."""

from __future__ import annotations

import pytest

from tests.unit.compiled.effort import LARGE


@pytest.fixture(scope="session")
def large() -> bool:
    """Whether time does not matter."""
    return LARGE
