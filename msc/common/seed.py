"""MindSpore's `common.seed`."""

from msc.frontend.randomness import get_seed, set_seed

__all__ = ["get_seed", "set_seed"]
