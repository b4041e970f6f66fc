"""The memory plan: offsets of buffers and weights."""
