"""What each `ms` operation computes, in plain NumPy, by family. Loaded by `msc.interp.registry`."""
