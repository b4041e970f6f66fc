"""Random kernels on simulated Ascend cores, against the interpreter: `python -m tests.random_kernels_ascend`."""
