"""The memories of intermediate arrays, and whether they fit there."""
