"""Whether tests may take long: see effort.py."""

from __future__ import annotations

import pytest

from tests.covering import LARGE


@pytest.fixture(scope="session")
def large() -> bool:
    """Whether time does not matter."""
    return LARGE
