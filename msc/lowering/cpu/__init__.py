"""From scheduled kernels to loops over planned buffers, for a CPU."""
