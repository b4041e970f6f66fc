"""Scheduled kernels to functions of loops."""
