"""Register tiles, the order of the loops over them, and the parts of operands that they read from a cache."""
