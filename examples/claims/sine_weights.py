"""Weights for `sine.mir`: random ones, for its size alone matters here."""

import numpy as np
from safetensors.numpy import save_file

random = np.random.default_rng(0)
shapes = {"w1": (16, 1), "b1": (16,), "w2": (16, 16), "b2": (16,), "w3": (1, 16)}
save_file({name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}, "sine.safetensors")
