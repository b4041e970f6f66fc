"""Polyhedral mathematics in plain Python over islpy. It knows no IR; affine maps are all that it shares with one."""

# Scalars name operators, whose records they need.
from msc.poly import operators as operators
