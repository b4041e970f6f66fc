"""Random ONNX models with open sizes, compiled for a range: `python -m tests.open_sizes --seconds 600`."""
