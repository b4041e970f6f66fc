"""Operations that move elements and compute nothing: reshaping, transposing, joining, cutting, padding."""

from __future__ import annotations

import math
from typing import Literal, cast

import numpy as np

from msc.dialects.arrays import Array
from msc.dialects.ms.base import MsOp
from msc.interp.registry import meaning


@meaning("reshape")
def _reshape(op: MsOp, x: Array) -> Array:
    return x.reshape(op.ints("shape"))


@meaning("flatten")
def _flatten(op: MsOp, x: Array) -> Array:
    """Two dimensions: those before `axis`, and the rest."""
    axis = op.int_("axis")
    front = math.prod(x.shape[: axis + x.ndim if axis < 0 else axis])
    return x.reshape(front, math.prod(x.shape[len(x.shape) + axis if axis < 0 else axis :]))


@meaning("squeeze")
def _squeeze(op: MsOp, x: Array) -> Array:
    axes = op.ints("axis")
    return x.squeeze(tuple(axes)) if axes else x.squeeze()


@meaning("expand_dims")
def _expand_dims(op: MsOp, x: Array) -> Array:
    return np.expand_dims(x, op.ints("axis"))


@meaning("transpose")
def _transpose(op: MsOp, x: Array) -> Array:
    return x.transpose(op.ints("perm") or tuple(reversed(range(x.ndim))))


@meaning("broadcast_to")
def _broadcast_to(op: MsOp, x: Array) -> Array:
    """-1 keeps the operand's size."""
    shape = op.ints("shape")
    offset = len(shape) - x.ndim
    return np.broadcast_to(x, tuple(x.shape[i - offset] if n == -1 else n for i, n in enumerate(shape)))


@meaning("concat")
def _concat(op: MsOp, *arrays: Array) -> Array:
    return np.concatenate(arrays, op.int_("axis"))


@meaning("stack")
def _stack(op: MsOp, *arrays: Array) -> Array:
    return np.stack(arrays, op.int_("axis"))


@meaning("split")
def _split(op: MsOp, x: Array) -> tuple[Array, ...]:
    ends = np.cumsum(op.ints("sizes"))
    return tuple(np.split(x, ends[:-1].tolist(), op.int_("axis")))


@meaning("slice")
def _slice(op: MsOp, x: Array) -> Array:
    """One entry an axis; how many elements each axis keeps is what the operation infers."""
    strides = op.ints("strides") or (1,) * x.ndim
    return x[tuple(slice(*entry) for entry in zip(op.ints("begin"), op.ints("end"), strides, strict=True))]


@meaning("tile")
def _tile(op: MsOp, x: Array) -> Array:
    return np.tile(x, op.ints("multiples"))


@meaning("reverse")
def _reverse(op: MsOp, x: Array) -> Array:
    return np.flip(x, op.ints("axis"))


@meaning("pad")
def _pad(op: MsOp, x: Array) -> Array:
    """`pad` holds what goes before each dimension, then what goes after each."""
    pad = op.ints("pad")
    widths = list(zip(pad[: x.ndim], pad[x.ndim :], strict=True))
    mode = op.word("mode")
    if mode == "constant":
        return np.pad(x, widths, constant_values=np.asarray(op.real("value")).astype(x.dtype)[()])
    return np.pad(x, widths, mode=cast(Literal["edge", "reflect", "wrap"], mode))


@meaning("dilate")
def _dilate(op: MsOp, x: Array) -> Array:
    """`interior` zeros between neighbours along each dimension."""
    steps = [i + 1 for i in op.ints("interior")]
    y = np.zeros([max((n - 1) * s + 1, 0) for n, s in zip(x.shape, steps, strict=True)], x.dtype)
    y[tuple(slice(None, None, s) for s in steps)] = x
    return y


@meaning("windows")
def _windows(op: MsOp, x: Array) -> Array:
    """A pair of axes, position and element, for each spatial axis."""
    size, stride = op.ints("size"), op.ints("stride")
    spatial = tuple(range(2, x.ndim))
    every = np.lib.stride_tricks.sliding_window_view(x, size, spatial)
    some = every[(slice(None), slice(None), *(slice(None, None, step) for step in stride))]
    return some.transpose(0, 1, *(a for k in spatial for a in (k, k + len(spatial))))


@meaning("depth_to_space")
def _depth_to_space(op: MsOp, x: Array) -> Array:
    """[N, C b b, H, W] -> [N, C, H b, W b]; in mode "DCR" the place in the block varies slower than C, else faster."""
    n, c, h, w = x.shape
    b = op.int_("block_size")
    if op.word("mode") == "CRD":
        return x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // b**2, h * b, w * b)
    return x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


@meaning("space_to_depth")
def _space_to_depth(op: MsOp, x: Array) -> Array:
    """[N, C, H b, W b] -> [N, C b b, H, W]: the inverse of depth_to_space in the same mode."""
    n, c, h, w = x.shape
    b = op.int_("block_size")
    blocks = x.reshape(n, c, h // b, b, w // b, b)
    order = (0, 1, 3, 5, 2, 4) if op.word("mode") == "CRD" else (0, 3, 5, 1, 2, 4)
    return blocks.transpose(order).reshape(n, c * b**2, h // b, w // b)
