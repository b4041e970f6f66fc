"""Transformations of functions on tensors: gradients, Jacobians, batching. In PyNative mode and inside of graphs."""
