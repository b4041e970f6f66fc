"""Scheduled kernels to the loops of each kind of target."""
