"""A small encoder of PyTorch, exported with an open length of sequences."""

import torch
from torch import nn
from torch.export import Dim

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(d_model=16, nhead=2, dim_feedforward=32, batch_first=True)
encoder = nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=False).eval()
tokens = torch.randn(2, 7, 16)
torch.onnx.export(
    encoder,
    (tokens,),
    "encoder.onnx",
    input_names=["tokens"],
    output_names=["states"],
    dynamic_shapes={"src": {1: Dim("sequence", max=64)}},
    external_data=False,
    dynamo=True,
)
