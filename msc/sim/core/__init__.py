"""The C of the simulator and the header that kernels share with it; `msc.sim.sources` lists it."""
