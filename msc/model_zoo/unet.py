"""U-Net (Ronneberger et al., 2015): down to ever smaller images and up again, with what was there on the way down."""

from __future__ import annotations

from msc import nn, ops
from msc.ops import Tensor


class DoubleConv(nn.SequentialCell):
    """Two 3x3 convolutions, each normalised and cut at 0."""

    def __init__(self, inputs: int, outputs: int) -> None:
        cells: list[nn.Cell] = []
        for channels in (inputs, outputs):
            cells += [nn.Conv2d(channels, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(cells)


class UNet(nn.Cell):
    """Images `[n, channels, h, w]` to scores of each pixel `[n, classes, h, w]`; 2 to the `depth` divides h and w."""

    def __init__(self, channels: int = 3, classes: int = 2, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        widths = [width << k for k in range(depth + 1)]
        self.down = nn.CellList([DoubleConv(a, b) for a, b in zip([channels, *widths], widths, strict=False)])
        self.pool = nn.MaxPool2d(2, stride=2)
        pairs = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.up = nn.CellList(
            [nn.Conv2dTranspose(a, b, 2, stride=2, pad_mode="valid", has_bias=True) for a, b in pairs]
        )
        self.merge = nn.CellList([DoubleConv(2 * b, b) for _, b in pairs])
        self.last = nn.Conv2d(width, classes, 1, has_bias=True)

    def construct(self, x: Tensor) -> Tensor:
        seen: list[Tensor] = []
        for k, cell in enumerate(self.down):
            x = cell(x if k == 0 else self.pool(x))
            seen.append(x)
        for up, merge, before in zip(self.up, self.merge, seen[-2::-1], strict=True):
            x = merge(ops.cat((before, up(x)), 1))
        return self.last(x)
