"""Differentiation as a transformation of graphs: rules by operation, reverse mode, and the pass `grad`."""
