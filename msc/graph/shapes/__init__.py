"""Shapes, and sizes that calls decide."""
