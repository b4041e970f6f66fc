"""Weights of a model: read from safetensors files, derived, and written to them."""
