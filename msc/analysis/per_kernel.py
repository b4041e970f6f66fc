"""Analyses of a kernel that are computed once for as long as the kernel does not change."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from msc.dialects.gk import KernelOp
from msc.dialects.open_sizes import KERNEL_SIZES, KERNEL_VALID

T = TypeVar("T")

_READ = (KERNEL_SIZES, KERNEL_VALID)
"""The attributes of a kernel that analyses read; its schedule and what clustering noted they do not."""

_SLOT = "analyses"
"""Where a kernel keeps them. A weak dictionary would not do: what they hold leads back to the kernel."""


def per_kernel(analysis: Callable[[KernelOp], T]) -> Callable[[KernelOp], T]:
    """Cache an analysis of kernels; it is computed again when the kernel has changed since.

    A change is seen by looking, so no pass has to tell of it. The analysis reads the kernel's region and the attributes
    in `_READ`, and nothing around the kernel.
    """

    @wraps(analysis)
    def cached(kernel: KernelOp) -> T:
        known = cast("dict[object, tuple[list[object], T]]", vars(kernel).setdefault(_SLOT, {}))
        parts, found = _parts(kernel), known.get(cached)
        if found is None or not _same(found[0], parts):
            found = parts, analysis(kernel)
            known[cached] = found
        return found[1]

    return cached


def _parts(kernel: KernelOp) -> list[object]:
    """All that a kernel consists of. Attributes and types are immutable, so identical parts mean the same."""
    parts: list[object] = [kernel.attributes.get(name) for name in _READ]
    parts += [argument.type for argument in kernel.body.block.args]
    for op in kernel.body.walk():
        parts += (op, op.location, *op.operands, *op.properties.values(), *op.attributes.values())
        parts += [result.type for result in op.results]
    return parts


def _same(before: list[object], now: list[object]) -> bool:
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
