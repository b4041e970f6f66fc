"""Polyhedral mathematics in plain Python over islpy. Knows no IR: affine maps are the only thing it shares with one."""
