"""Pass `narrow-positions`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from msc.analysis.properties import REWRITES_GRAPH
from msc.dialects.ms.reductions import ArgExtremeOp
from msc.dialects.open_sizes import has_open_sizes
from msc.graph.emitter import Emitter
from msc.graph.expand.expanders.reductions import place_of_extreme
from msc.graph.graph_loops import put_in_place

_MOST = 1 << 16
"""Places along an axis that are a constant; f32 would hold 2^24 exactly."""
_WIDE = ("i64", "ui64", "f64")


@dataclass(frozen=True)
class NarrowPositions(ModulePass):
    """Look for the places of extremes in f32, which vector units have, and make them i64 at the end.

    Takes: a graph. Gives: in place of an `ms.argmax` or `ms.argmin` along up to 65,536 elements the reductions that it
    stands for, over places that are a constant of f32, and a cast. Left alone: those of elements of 64 bits, and all
    where calls decide sizes.
    Keeps: the results, bit by bit.
    """

    name = "narrow-positions"
    contract = REWRITES_GRAPH

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if has_open_sizes(op):
            return
        for extreme in [o for o in op.walk() if isinstance(o, ArgExtremeOp)]:
            if extreme.dtype(0) not in _WIDE and extreme.shape(0)[extreme.int_("axis")] <= _MOST:
                emit = Emitter(extreme)
                place = place_of_extreme(extreme, _places(extreme, emit), emit)
                put_in_place(emit, emit.cast(place, "i64"), "place")


def _places(extreme: ArgExtremeOp, emit: Emitter) -> SSAValue:
    """0, 1, 2, ... along the axis."""
    rank = len(extreme.shape(0))
    axis = extreme.int_("axis") % rank
    places = np.arange(extreme.shape(0)[axis], dtype=np.float32)
    return emit.ssa(emit.known(places.reshape([-1 if k == axis else 1 for k in range(axis, rank)])))
