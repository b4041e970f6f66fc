"""How operations are written, by family."""
