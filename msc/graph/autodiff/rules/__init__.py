"""Gradients by formula, by family of operations: where one is better than what the compute definition gives."""
