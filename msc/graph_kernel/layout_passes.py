"""The passes that decide how kernels lie in memory before forms of them are compared."""

from __future__ import annotations

from msc.graph_kernel.fusion.fuse_pads import FusePads
from msc.graph_kernel.layout.assign_layouts import AssignLayouts
from msc.graph_kernel.layout.layout_choice import BEHIND

LAYOUTS = FusePads(), AssignLayouts(compare=False), *BEHIND
"""In the order of the stage `gk`; layouts and packing are the first guess."""
