"""MindSpore's `mint.linalg`."""

from msc import ops

inv, matrix_norm, norm, qr, vector_norm, det = (
    ops.inverse, ops.matrix_norm, ops.norm, ops.qr, ops.vector_norm, ops.det,
)  # fmt: skip
__all__ = ["det", "inv", "matrix_norm", "norm", "qr", "vector_norm"]
