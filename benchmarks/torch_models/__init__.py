"""Networks written in PyTorch with seeded weights, and their export to ONNX by either of PyTorch's exporters.

One module per architecture; ``catalogue.py`` names the variants; ``export.py`` writes ONNX files.
"""
