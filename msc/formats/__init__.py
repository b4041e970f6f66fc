"""Formats of model files: each reads and writes models for the driver, which asks them by extension."""
