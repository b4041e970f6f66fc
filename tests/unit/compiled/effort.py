"""How much is tried: a little in every run of the tests, much with MSC_TESTS=large in the environment.

MSC_TESTS=large ./run-tests tests/unit/compiled        every element type in every shape; about half an hour
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.covering import LARGE

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
EFFORT = settings(max_examples=200 if LARGE else 6, deadline=None, suppress_health_check=_SLOW)
