"""The seed's example of exporting LeNet-5 (e22), as far as `.mir` and ONNX go: what is read back gives the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import msc
from msc import Tensor
from msc.dialects.arrays import Array
from msc.model_zoo import LeNet5

RECORDED = [0.029382, -0.015364, -0.022076, -0.154884, 0.050070, 0.114839, -0.112224, -0.037601, 0.072628, 0.063218]
"""What MindSpore 2.10.0 gives, before and after its export."""


def det(*shape: int, scale: float = 0.2) -> Array:
    """The seeds' weights and inputs."""
    count = int(np.prod(shape))
    return ((((np.arange(count) * 37) % 101) / 101.0 - 0.5) * scale).astype(np.float32).reshape(shape)


def test_lenet_is_exported_and_read_back(tmp_path: Path) -> None:
    net = LeNet5()
    for parameter in net.trainable_params():
        parameter.set_data(Tensor(det(*parameter.shape)))
    net.set_train(False)
    x = Tensor(det(1, 1, 32, 32, scale=2.0))
    original = net(x).asnumpy()
    np.testing.assert_allclose(original[0], RECORDED, rtol=1e-3, atol=2e-6)
    for file_format in ("MIR", "ONNX"):
        name = msc.export(net, x, file_name=str(tmp_path / "_lenet"), file_format=file_format)
        np.testing.assert_allclose(msc.compile(name)(x.asnumpy()), original, rtol=1e-4, atol=1e-5)
    msc.set_context(mode=msc.GRAPH_MODE)
    try:
        np.testing.assert_allclose(net(x).asnumpy(), original, rtol=1e-4, atol=1e-5)
    finally:
        msc.set_context(mode=msc.PYNATIVE_MODE)
