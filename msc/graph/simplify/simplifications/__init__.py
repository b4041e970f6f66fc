"""Rules that replace an operation by something simpler with bit-identical results, by family."""

from msc.graph.simplify.simplifications.registry import simplifications_of

__all__ = ["simplifications_of"]
