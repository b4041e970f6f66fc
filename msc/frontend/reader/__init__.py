"""Reads Python source: user functions are interpreted on their syntax trees, with tensors as values of a graph."""
