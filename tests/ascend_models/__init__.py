"""Whole networks on simulated Ascend cores, kernel by kernel: `python -m tests.ascend_models`."""
