"""Networks exported by PyTorch, through the whole compiler, against PyTorch: ``python -m tests.models --help``."""
