"""Kernels that only move data: transpositions, slices, pads, concatenations."""
