"""How wide panels of packed operands are, by how many rows of the other operand L1 keeps."""

from __future__ import annotations

import pytest

from msc.cost.register_tiles import micro_panel_widths
from msc.targets.catalogue import machine_named


@pytest.mark.parametrize(
    ("machine", "steps", "vectors"),
    [
        ("x86-64-v4", 3072, 3),
        ("x86-64-v4", 2048, 3),
        ("x86-64-v4", 768, 2),
        ("x86-64-v4", 1000, 2),
        ("x86-64-v3", 3072, 2),
    ],
)
def test_rows_that_share_sets_make_panels_wider(machine: str, steps: int, vectors: int) -> None:
    """Rows of 2048 elements meet in one set of L1, whose eight ways keep eight of them: 8 x 48 fills 32 registers."""
    target = machine_named(machine)
    assert micro_panel_widths(target, 4, 48, 4 * steps)[0] == vectors * target.lanes(4)
