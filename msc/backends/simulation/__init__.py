"""Kernels for DaVinci cores on the simulator: one kernel, and lists of cases."""
