"""Random Cells: their source is generated, and PyNative mode, graph mode and plain NumPy must give the same."""
