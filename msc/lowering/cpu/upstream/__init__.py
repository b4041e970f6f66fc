"""The loop stage in upstream dialects."""
