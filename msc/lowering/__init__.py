"""Level 4: kernels to loops, tensors to planned buffers, and loops to upstream dialects."""
