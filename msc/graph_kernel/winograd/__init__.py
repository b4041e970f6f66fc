"""Winograd convolutions as kernels."""
