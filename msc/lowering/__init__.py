"""Level 4: scheduled kernels to the loops of each kind of target."""
