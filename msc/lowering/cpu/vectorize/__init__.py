"""Vector loops to vector operations."""
