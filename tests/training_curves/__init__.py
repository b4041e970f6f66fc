"""Losses of runs of training beside PyTorch's, from the same weights on the same batches."""
