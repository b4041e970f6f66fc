"""Random quantised operators and networks, against ONNX Runtime: `python -m tests.random_quantised --count 2000`."""
