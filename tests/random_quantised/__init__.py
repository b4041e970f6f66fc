"""Random quantised operators and networks, against ONNX Runtime: `python -m tests.random_quantised --count 2000`.

With `--machines` networks are computed in integers for several machines, which give equal bytes.
"""
