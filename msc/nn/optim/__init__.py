"""Optimisers as cells: each call updates parameters by their gradients."""
