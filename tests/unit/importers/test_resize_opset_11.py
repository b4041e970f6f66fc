"""Resize of opset 11 with the coordinates that TensorFlow exports used."""

from __future__ import annotations

import numpy as np
import pytest

from msc.importers.onnx.operators.interpolation import AxisResize


@pytest.mark.parametrize(("old", "new"), [(4, 2), (2, 4), (5, 3)])
def test_coordinates_of_tf_half_pixel_for_nn(old: int, new: int) -> None:
    scale = new / old
    axis = AxisResize(old, new, scale, (0, 1), "tf_half_pixel_for_nn", "nearest", "floor", -0.75, False, False)
    np.testing.assert_allclose(axis.coordinates(), [(i + 0.5) / scale for i in range(new)])
    assert axis.weights().argmax(1).tolist() == [min(int((i + 0.5) / scale), old - 1) for i in range(new)]
