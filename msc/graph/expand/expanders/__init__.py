"""Expanders: what each composite operation is in basic ones, by family."""

from msc.graph.expand.expanders.registry import expander

__all__ = ["expander"]
