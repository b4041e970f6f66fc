"""Composite operations to basic ones."""
