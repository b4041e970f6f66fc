"""Expanders: what each composite operation is in basic ones, by family."""

from msc.graph.expand.expanders.registry import expander_of

__all__ = ["expander_of"]
