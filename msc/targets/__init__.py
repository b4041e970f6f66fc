"""Level 1: machines as data."""
