"""Kernel formation: clustering, layouts of operands, attention and Winograd."""
