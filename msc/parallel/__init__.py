"""Many devices: meshes, layouts of tensors on them, and the programs of their ranks."""
