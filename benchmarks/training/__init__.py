"""Training steps beside PyTorch's: ``python -m benchmarks.training --help``."""
