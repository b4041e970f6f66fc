"""Products and convolutions on the cube of a DaVinci core: which kernels they are, their schedules and cycles."""
