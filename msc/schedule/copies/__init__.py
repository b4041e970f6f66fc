"""How kernels that only move data are cut into tiles: boxes, the cost of tiles, and the trees of these."""
