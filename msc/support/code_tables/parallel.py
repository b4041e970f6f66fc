"""Codes of programs for many devices."""

from __future__ import annotations

from msc.support.code_tables.entry import Code

CODES = (
    Code(
        "MSC1100",
        "device mesh that is none",
        "A mesh is written as `dp=2,tp=4`: axes with different names, each with its number of ranks. Ranks count "
        "the last axis fastest: on this mesh rank 5 is at dp 1 and tp 1.",
    ),
    Code(
        "MSC1101",
        "layout that does not lie on the mesh",
        "A layout such as `[dp, _, sp.tp] sum(cp)` names for each dimension of a tensor the axes of the mesh that cut "
        "it, the major one first, or `_` for none, and the axes over which parts are still to be reduced. An axis "
        "stands once, and each dimension divides by the product of the sizes of its axes.",
    ),
    Code(
        "MSC1102",
        "no way from one layout to another",
        "A tensor goes from layout to layout on one mesh by gathering, cutting and exchanging its parts. Both layouts "
        "have the tensor's number of dimensions; values that are whole are not made partial; and each step between "
        "them divides the dimensions that it cuts.",
    ),
)
