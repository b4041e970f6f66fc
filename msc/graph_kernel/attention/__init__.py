"""Attention in blocks of keys."""
