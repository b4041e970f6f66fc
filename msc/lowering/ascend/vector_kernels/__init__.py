"""Kernels of the vector unit: tiles of tensors in UB, instructions with masks, repeats and strides over them."""
