"""What all tests share."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """The thousands of cases that are there by now stay to the end: the garbage collector need not visit them."""
    gc.collect()
    gc.freeze()
