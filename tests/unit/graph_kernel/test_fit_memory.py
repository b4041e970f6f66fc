"""Models that would need more memory than allowed compute kernels again, with the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msc
from msc import MscError, Tensor, nn, ops
from msc.dialects.arrays import Array

DEPTH, WIDTH, BATCH = 6, 64, 256


class Deep(nn.Cell):
    """A chain of layers, the activations of which the gradient reads."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(WIDTH, WIDTH) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm((WIDTH,))

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.norm(x + ops.tanh(layer(x)))
        return x


def step(limit: int | str) -> tuple[int, list[Array]]:
    """The bytes of workspace of a step of training, and what it gives and updates."""
    msc.set_seed(3)
    net = Deep()
    momentum = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    taken = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), momentum).set_train()
    values = np.random.default_rng(5).standard_normal((2, BATCH, WIDTH)).astype(np.float32)
    x, y = values[0], values[1]
    model = msc.compile(taken, Tensor(x), Tensor(y), max_memory=limit, use_cache=False)
    states = {p.name: p.asnumpy().copy() for p in taken.get_parameters()}
    given = [states[t.name] for t in model.inputs[2:]]
    loss = model(x, y, *given)
    return model.signature.workspace_bytes, [np.asarray(loss), *given]


def test_a_step_fits_and_keeps_its_bits() -> None:
    free, expected = step("4G")
    fixed = 2 * BATCH * WIDTH * 4 + 4 + sum(a.nbytes for a in expected[1:])
    found, actual = step(fixed + free * 2 // 3)
    assert found <= free * 2 // 3
    for a, b in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_cannot_fit_is_refused() -> None:
    with pytest.raises(MscError, match="MSC0507"):
        step(300_000)


def test_open_sizes_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "open.mir"
    path.write_text(
        """builtin.module @open {
  func.func @main(%x: tensor<?x8xf32> {ms.dims = ["n", ""]}) -> tensor<?x8xf32> {
    %0 = ms.exp %x
    func.return %0 : tensor<?x8xf32>
  }
}
""",
        encoding="utf-8",
    )
    model = msc.compile(str(path), dims={"n": "1..64"}, max_memory="1M")
    np.testing.assert_allclose(model(np.zeros((3, 8), np.float32)), np.ones((3, 8)))
