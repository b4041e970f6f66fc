"""Gradients of random Cells with control flow, in PyNative mode and as graphs, beside PyTorch's."""
