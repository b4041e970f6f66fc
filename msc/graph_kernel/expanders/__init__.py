"""Expanders: what each composite operation is in basic ones, by family."""

from msc.graph_kernel.expanders.registry import expander_of

__all__ = ["expander_of"]
