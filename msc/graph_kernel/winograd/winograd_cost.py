"""Whether Winograd's algorithm makes a convolution faster, by an analytical model; nothing is measured.

Products run at a share of the peak, weights stream from memory (those of a network do not stay in a cache), and the
transformations cost some instructions and the traffic of what they write and the product reads again.
"""

from __future__ import annotations

from dataclasses import dataclass

from msc.dialects.ms.convolution import Conv2dOp
from msc.graph_kernel.winograd.transforms import TAPS, TILES
from msc.targets.machine import Machine

_ELEMENT_BYTES = 4
_WASTE = 1.125
"""Times its even share of blocks that the busiest thread may have: a bound of the search, of no machine."""
_GAIN = 1.15
"""How much faster it must be by the model to be taken: Winograd's algorithm rounds more, and models err."""


@dataclass(frozen=True)
class Sizes:
    """A convolution: channels in and out, and the results along the two axes of each of `batch` images.

    `constant` says whether its filters are known when it is compiled; others are transformed at each call.
    """

    batch: int
    inputs: int
    outputs: int
    height: int
    width: int
    constant: bool = True

    @staticmethod
    def of(conv: Conv2dOp, constant: bool = True) -> Sizes:
        batch, outputs, height, width = conv.result_shape()
        return Sizes(batch, conv.shape(1)[1], outputs, height, width, constant)

    def rows(self, tile: int) -> int:
        """Rows of tiles in an image."""
        return -(-self.height // tile)

    def columns(self, tile: int) -> int:
        """Tiles in a row."""
        return -(-self.width // tile)


def cheapest_tile(sizes: Sizes, target: Machine) -> int | None:
    """Results of a tile along an axis, or None where sliding is about as fast."""
    cost, tile = min((filtering_cycles(sizes, tile, target), tile) for tile in TILES)
    return tile if cost * _GAIN < sliding_cycles(sizes, target) else None


def sliding_cycles(sizes: Sizes, target: Machine) -> float:
    """Of the convolution as it is defined."""
    results = sizes.batch * sizes.height * sizes.width
    return _multiplying(results * TAPS**2, sizes, target, target.code.window_share) + _weights(TAPS**2, sizes, target)


def filtering_cycles(sizes: Sizes, tile: int, target: Machine) -> float:
    """By tiles of `tile` results along each axis."""
    places = (tile + TAPS - 1) ** 2
    tiles = sizes.batch * sizes.rows(tile) * sizes.columns(tile)
    product = _multiplying(tiles * places, sizes, target, target.code.places_share) + _weights(places, sizes, target)
    both = tiles * places * (_vectors(sizes.inputs, target) + _vectors(sizes.outputs, target))
    near = both * target.vector_bytes < target.l2
    rate = target.code.panel_rate if near else target.levels[:3][-1].bytes_per_cycle
    filters = 0.0 if sizes.constant else _transforming_filters(sizes, places, target)
    return product + filters + both * (target.code.transformation + target.vector_bytes / rate)


def _transforming_filters(sizes: Sizes, places: int, target: Machine) -> float:
    """Their taps are read one by one, as vectors lie along the outputs, which lie apart; their places are streamed."""
    vectors = sizes.inputs * _vectors(sizes.outputs, target)
    reading = TAPS**2 * target.lanes(_ELEMENT_BYTES) / target.ports.load
    return vectors * (reading + places * target.code.transformation) + _weights(places, sizes, target)


def cheapest_block(sizes: Sizes, tile: int, target: Machine, threads: int) -> int:
    """Rows of tiles that are transformed, multiplied and transformed back before the next ones, 0 for all at once.

    What counts are the bytes from beyond L2 for each thread. All at once, transformed tiles and their
    products are written there and read again; in blocks, they stay, but each block reads the weights, unless these stay
    too. Of blocks that cost the same the smallest take the least memory.
    """
    rows, weights = sizes.rows(tile), _weight_bytes((tile + TAPS - 1) ** 2, sizes)
    whole = sizes.batch * rows * _row_bytes(sizes, tile)
    costs = {0: (weights + (2 * whole if threads > 1 or whole > target.l2 else 0)) / threads}
    for block in (n for n in range(1, rows + 1) if rows % n == 0):
        held, blocks = block * _row_bytes(sizes, tile), sizes.batch * rows // block
        most = -(-blocks // threads)
        if block * sizes.columns(tile) < target.sums_in_flight or held > target.l2 // 2:
            continue
        if most * threads <= _WASTE * blocks:
            costs[block] = weights * (1 if weights + held <= target.l2 else most)
    return min(costs, key=lambda block: (costs[block], block or rows))


def _row_bytes(sizes: Sizes, tile: int) -> int:
    """Of a row of tiles, transformed, and their products."""
    return (tile + TAPS - 1) ** 2 * sizes.columns(tile) * (sizes.inputs + sizes.outputs) * _ELEMENT_BYTES


def _weight_bytes(places: int, sizes: Sizes) -> int:
    return places * sizes.inputs * sizes.outputs * _ELEMENT_BYTES


def _multiplying(rows: int, sizes: Sizes, target: Machine, share: float) -> float:
    return rows * sizes.inputs * _vectors(sizes.outputs, target) / target.ports.arithmetic / share


def _weights(places: int, sizes: Sizes, target: Machine) -> float:
    return _weight_bytes(places, sizes) / target.memory.bytes_per_cycle


def _vectors(channels: int, target: Machine) -> int:
    return -(-channels // target.lanes(_ELEMENT_BYTES))
