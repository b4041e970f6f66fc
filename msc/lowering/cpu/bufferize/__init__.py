"""Tensors to buffers."""
