"""Loops and chains of kernels to functions of their own."""
