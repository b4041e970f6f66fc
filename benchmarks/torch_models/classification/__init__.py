"""The architectures of torchvision's classification zoo, layer by layer, with seeded weights.

One module per family; `catalogue.py` names the variants. They are there to be compiled: `python -m
benchmarks.compile_time` measures how long that takes.
"""
