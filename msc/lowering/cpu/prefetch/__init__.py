"""Prefetches in loops that stream."""
