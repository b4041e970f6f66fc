"""How kernels are cut into tiles for the vector unit: their axes, the cost of tiles, and the trees of these."""
