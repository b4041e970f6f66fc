"""The axes of an image in tiles, by name, and in which order tensors of tiles have them.

`n` images of `b` blocks of `r` rows of `w` tiles; a volume is `d` images. Blocks are in front, of all images; all other
tiles are rows of a matrix, one for each place in a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from xdsl.ir import SSAValue

from msc.dialects.ms.axis_transforms import WindowsOp
from msc.dialects.ms.movement import TransposeOp
from msc.graph.emitter import Emitter
from msc.ir.typed import static_shape

ROW, COLUMN, CHANNEL = "row in tile", "column in tile", "channel"


@dataclass(frozen=True)
class TileAxes:
    """The axes of `batch` images of `rows` by `columns` tiles, in blocks of `block` rows, a divisor; 0: one block.

    Of volumes (`depth` images each) all tiles are one block.
    """

    batch: int
    rows: int
    columns: int
    block: int
    depth: int | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """How many there are of what an axis counts."""
        rows = self.block or self.rows
        images = {"n": self.batch} if self.depth is None else {"n": self.batch, "d": self.depth}
        return {**images, "b": self.rows // rows, "r": rows, "w": self.columns}

    @property
    def blocks(self) -> list[str]:
        """The axes that number blocks; none where all tiles are one."""
        return [name for name in "nb" if self.sizes[name] > 1] if self.block else []

    @property
    def image(self) -> list[str]:
        """The axes of an image in tiles."""
        return ["n", CHANNEL, *self._along_depth(), *self._along_rows(), ROW, "w", COLUMN]

    @property
    def matrices(self) -> list[str]:
        """The same axes with blocks in front, then tiles, and then places in a tile."""
        tiles = [n for n in ("n", *self._along_depth(), *self._along_rows(), "w") if n not in self.blocks]
        return [*self.blocks, *tiles, ROW, COLUMN, CHANNEL]

    def _along_depth(self) -> list[str]:
        return [] if self.depth is None else ["d"]

    def _along_rows(self) -> list[str]:
        return [name for name in "br" if self.sizes[name] > 1] or ["r"]

    def windows(self, emit: Emitter, image: SSAValue, size: int, stride: int) -> SSAValue:
        """All windows of `size` by `size` of an image `[n, c, h, w]` or a volume, with the axes of `image`."""
        if self.depth is not None:
            return _windows_of_each(emit, image, size, stride)
        if self._along_rows() != ["b", "r"]:
            return emit(WindowsOp, image, size=[size] * 2, stride=[stride] * 2)
        width, step = static_shape(image)[-1], self.block * stride
        blocks = emit(WindowsOp, image, size=[step + size - stride, width], stride=[step, 1])
        images = emit.reshape(blocks, (*static_shape(blocks)[:4], width))
        return _windows_of_each(emit, images, size, stride)

    def to_matrices(self, emit: Emitter, tiles: SSAValue) -> SSAValue:
        """An image in tiles as `[blocks..., tile, place in tile, channel]`."""
        size, channels = static_shape(tiles)[-1], static_shape(tiles)[1]
        blocks, count = [self.sizes[name] for name in self.blocks], prod(self.sizes.values())
        matrices = (*blocks, count // prod(blocks), size**2, channels)
        return emit.reshape(_arranged(emit, tiles, self.image, self.matrices), matrices)

    def to_image(self, emit: Emitter, matrices: SSAValue, size: int) -> SSAValue:
        """The inverse of `to_matrices`, for tiles of `size` by `size`."""
        sizes = {**self.sizes, ROW: size, COLUMN: size, CHANNEL: static_shape(matrices)[-1]}
        apart = emit.reshape(matrices, [sizes[name] for name in self.matrices])
        return _arranged(emit, apart, self.matrices, self.image)

    def split(self, shape: Sequence[int], size: int) -> list[int]:
        """The shape in tiles of `size` by `size` of what broadcasts to `[n, c, h, w]`."""
        *front, height, width = (1, 1, *shape)
        sizes = {**self.sizes, ROW: size, COLUMN: size}
        axes = ((height, [*self._along_rows(), ROW]), (width, ["w", COLUMN]))
        parts = ([sizes[name] if length > 1 else 1 for name in names] for length, names in axes)
        return [*front[2:], *chain.from_iterable(parts)]


def _windows_of_each(emit: Emitter, images: SSAValue, size: int, stride: int) -> SSAValue:
    """All windows of `size` by `size` of each image along the third axis of `[n, c, images, h, w]`."""
    tiles = emit(WindowsOp, images, size=[1, size, size], stride=[1, stride, stride])
    return emit.reshape(tiles, (*static_shape(tiles)[:3], *static_shape(tiles)[4:]))


def _arranged(emit: Emitter, value: SSAValue, names: Sequence[str], wanted: Sequence[str]) -> SSAValue:
    """A value with axes of some names, in another order."""
    return emit(TransposeOp, value, perm=[names.index(name) for name in wanted])
