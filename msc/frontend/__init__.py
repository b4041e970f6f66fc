"""The Python API below its surfaces: tensors, element types, how an operation runs at once or is captured."""
