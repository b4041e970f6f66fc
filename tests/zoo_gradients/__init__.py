"""Gradients of the zoo's networks by all weights and float inputs, beside PyTorch's with the same weights."""
