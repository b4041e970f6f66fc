"""Kernels for DaVinci cores with one thing changed, against what accepts them: `python -m tests.mutated_kernels`."""
