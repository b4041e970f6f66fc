"""Kernels of several members: each gets a tree, and the trees become one."""
