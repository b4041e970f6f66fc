"""A cluster file from measurements: the ranks of a running MPI program time products, copies and collectives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msc.planner.cluster import Cluster, ClusterDevice, Efficiency, Host, Link, Peaks
from msc.support.diagnostics import Diagnostic, MscError

_SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
"""Bytes of the all-reduces."""
_REPEATS = 7
_PRODUCT, _SMALL, _COPY = 768, 64, 1 << 23


def library() -> Any:
    """The module of MPI. Raises MSC1126 if Python has none."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        message = f"MPI cannot be used: {error}"
        advice = "pip install 'msc-compiler[parallel]', and a library of MPI (Debian: openmpi-bin)"
        raise MscError(Diagnostic("MSC1126", message, help=advice)) from error


def measure(mpi: Any) -> Cluster:
    """The cluster that the ranks of the program make; every rank calls it, and gets the same.

    Ranks of one host are a level of links, hosts another if there are several. All ranks compute at the same time, as
    they do in a program: what they share is shared here, too.
    """
    world = mpi.COMM_WORLD
    near = world.Split_type(mpi.COMM_TYPE_SHARED)
    far = world.Split(0 if near.Get_rank() == 0 else 1, world.Get_rank())
    hosts = world.allreduce(1 if near.Get_rank() == 0 else 0)
    figures = np.array(_device_figures(world))
    world.Bcast(figures, 0)
    peak, matrix, half, bandwidth, memory = (float(value) for value in figures)
    links = [_link("host", near, world.bcast(near.Get_size(), 0))]
    if hosts > 1:  # the ranks that are first on their hosts; the others form a group that nobody reads
        links.append(_link("network", far, hosts))
    found: list[Link] = world.bcast(links, 0)
    device = ClusterDevice(int(memory), bandwidth)
    efficiency = Efficiency(matrix, half, 1.0)
    title = f"measured: {world.Get_size()} ranks on {hosts} host{'s' * (hosts > 1)}"
    return Cluster("measured", title, device, Peaks(peak), efficiency, tuple(found), Host(int(memory), bandwidth))


def _best(world: Any, run: Callable[[], object]) -> float:
    """Seconds of the slowest rank, in the best of several runs that all begin together."""
    best = float("inf")
    for _ in range(_REPEATS):
        world.Barrier()
        start = time.perf_counter()
        run()
        best = min(best, max(world.allgather(time.perf_counter() - start)))
    return best


def _device_figures(world: Any) -> tuple[float, float, float, float, float]:
    """Peak, share of it, size of half of that, bytes a second of copies, bytes of memory of a rank.

    The peak is what endless products would reach, from a large and a small one: the curve of `Efficiency` through both.
    """
    rates: list[float] = []
    for size, times in ((_PRODUCT, 1), (_SMALL, 200)):
        a = np.ones((size, size), np.float32)
        out = np.empty_like(a)
        rates.append(2 * size**3 * times / _best(world, partial(_multiply, a, out, times)))
    root = (rates[0] / rates[1]) ** (1 / 3)
    # (large / (large + half))^3 over (small / (small + half))^3 is the measured ratio.
    half = max(0.0, (root - 1) / (1 / _SMALL - root / _PRODUCT)) if root < _PRODUCT / _SMALL else float(_PRODUCT)
    peak = rates[0] * ((_PRODUCT + half) / _PRODUCT) ** 3
    source = np.ones(_COPY, np.float32)
    target = np.empty_like(source)
    bandwidth = 2 * source.nbytes / _best(world, lambda: np.copyto(target, source))
    return peak, 1.0, half, bandwidth, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / world.Get_size()


def _multiply(a: NDArray[np.float32], out: NDArray[np.float32], times: int) -> None:
    for _ in range(times):
        np.matmul(a, a, out)


def _link(name: str, ranks: Any, size: int) -> Link:
    """Latency and bandwidth of a ring all-reduce, fitted to its times by least squares."""
    count = ranks.Get_size()
    if count == 1:
        return Link(name, size, 1e12, 0.0)
    times: list[float] = []
    for bytes_ in _SIZES:
        data = np.ones(bytes_ // 4, np.float32)
        out = np.empty_like(data)
        times.append(_best(ranks, partial(ranks.Allreduce, data, out)))
    steps, share = 2 * (count - 1), 2 * (count - 1) / count
    weights = 1 / np.array(times)  # relative errors count
    rows = np.array([[steps, share * bytes_] for bytes_ in _SIZES]) * weights[:, None]
    latency, inverse = (float(v) for v in np.linalg.lstsq(rows, np.ones(len(_SIZES)), rcond=None)[0])
    return Link(name, size, 1 / max(inverse, 1e-15), max(latency, 0.0), 1.0, "ring")
