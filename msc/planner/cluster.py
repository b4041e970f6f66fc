"""Clusters as data: a device, and the links between devices by level, read from a text file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from math import ceil, prod
from pathlib import Path
from typing import Any, Literal, cast

from msc.support.diagnostics import Diagnostic, MscError, did_you_mean
from msc.support.files import read_source
from msc.support.plain_files import opened
from msc.targets.abilities import figure
from msc.targets.files import SUFFIX, is_file
from msc.targets.reading import Figures, Reader, Source, parse

_FOLDER = Path(__file__).resolve().parent / "clusters"
_CODE = "MSC1120"


@dataclass(frozen=True)
class Peaks:
    """Operations a second of matrix products by element type; a type that is missing computes as f32."""

    f32: float = figure("operations a second of f32 products", least=1)
    f16: float = figure("operations a second of f16 products", 0.0)
    bf16: float = figure("operations a second of bf16 products", 0.0)
    f64: float = figure("operations a second of f64 products", 0.0)
    i8: float = figure("operations a second of i8 products", 0.0)

    def of(self, dtype: str) -> float:
        """The peak of an element type."""
        return float(getattr(self, dtype, 0.0)) or self.f32


@dataclass(frozen=True)
class Efficiency:
    """How much of its peaks a device reaches.

    A product [m, k] by [k, n] reaches `matrix * m/(m + half) * n/(n + half) * k/(k + half)` of the peak, and never
    moves its operands faster than memory does. All else moves bytes at `memory` of the bandwidth.
    """

    matrix: float = figure("share of the peak that an endless product reaches", least=1e-4, most=1)
    half: float = figure("size of m, n or k at which a product reaches half of that")
    memory: float = figure("share of the bandwidth that element-wise work reaches", least=1e-4, most=1)
    launch: float = figure("seconds from the end of a kernel to the start of the next", 0.0)


@dataclass(frozen=True)
class ClusterDevice:
    """What one device computes, holds and moves."""

    memory: int = figure("bytes of the device's memory", least=1)
    bandwidth: float = figure("bytes a second to and from the device's memory", least=1)
    reserved: int = figure("bytes of memory that the driver and the communication library keep", 0)

    def __bool__(self) -> bool:
        return self.memory > self.reserved


Topology = Literal["switch", "ring"]


@dataclass(frozen=True)
class Link:
    """One level of links: `size` groups of the level below, each device of which sends `bandwidth` over it."""

    name: str
    size: int = figure("how many of the level below are connected: devices on the first level", least=1)
    bandwidth: float = figure("bytes a second that one device sends over the level", least=1)
    latency: float = figure("seconds of one message")
    efficiency: float = figure("share of the bandwidth that large collectives reach", 1.0, least=1e-4, most=1)
    topology: Topology = figure("switch: any two at full bandwidth; ring: neighbours alone", "switch")

    @property
    def rate(self) -> float:
        """Bytes a second of large collectives."""
        return self.bandwidth * self.efficiency

    def steps(self, members: int) -> int:
        """Messages that one after another an all-gather takes among members."""
        return members - 1 if self.topology == "ring" else (members - 1).bit_length()


@dataclass(frozen=True)
class Host:
    """The memory beside the devices, and each device's way to it."""

    memory: int = figure("bytes of the host's memory for each device", least=1)
    bandwidth: float = figure("bytes a second between a device and its host", least=1)


@dataclass(frozen=True)
class Cluster:
    """Devices and their links, nearest first. Rank r is device r, counted along the nearest link first."""

    name: str
    title: str
    device: ClusterDevice
    peaks: Peaks
    efficiency: Efficiency
    links: tuple[Link, ...]
    host: Host | None = None

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return prod(link.size for link in self.links)

    @property
    def free_memory(self) -> int:
        """Bytes of each device that a program may use."""
        return self.device.memory - self.device.reserved

    def span(self, ranks: int, stride: int) -> list[tuple[Link, int]]:
        """The links that a group of ranks, each `stride` after the last, spans, with its members along each."""
        found: list[tuple[Link, int]] = []
        left, below = ranks, stride
        for link in self.links:
            along = min(left, max(1, ceil(link.size / below)))
            below = max(1, ceil(below / link.size))
            if along > 1:
                found.append((link, along))
                left = ceil(left / along)
        return found

    def link_between(self, ranks: int, stride: int) -> Link:
        """The slowest link between neighbours in a group of ranks, each `stride` after the last."""
        spanned = self.span(ranks, stride)
        return spanned[-1][0] if spanned else self.links[0]

    def matrix_seconds(self, m: float, n: float, k: float, dtype: str, count: float = 1, moved: float = 0) -> float:
        """Seconds of `count` products [m, k] by [k, n], which move `moved` bytes each."""
        curve = self.efficiency.matrix
        for size in (m, n, k):
            curve *= size / (size + self.efficiency.half)
        arithmetic = 2 * m * n * k / (self.peaks.of(dtype) * curve)
        return self.efficiency.launch + count * max(arithmetic, moved / self.moved_a_second)

    def moving_seconds(self, bytes_: float, kernels: int = 1) -> float:
        """Seconds of element-wise kernels that move bytes."""
        return kernels * self.efficiency.launch + bytes_ / self.moved_a_second

    @property
    def moved_a_second(self) -> float:
        """Bytes a second of element-wise work."""
        return self.device.bandwidth * self.efficiency.memory

    def copy_seconds(self, bytes_: float) -> float:
        """Seconds of a copy between host and device. Raises MSC1121 if the file states no host."""
        if self.host is None:
            message = f"the cluster {self.name} states no host, so nothing can be placed there"
            raise MscError(Diagnostic("MSC1121", message, help="add the table [host] to the cluster file"))
        return bytes_ / self.host.bandwidth


_TABLES: dict[str, type] = {
    "device": ClusterDevice, "flops": Peaks, "efficiency": Efficiency, "link": Link, "host": Host
}  # fmt: skip


def cluster_names() -> list[str]:
    """The clusters that msc has files of."""
    return sorted(path.stem for path in _FOLDER.glob(f"*{SUFFIX}"))


def cluster_named(name: str) -> Cluster:
    """The cluster of a ready name, or of a file: a name that ends with .toml.

    Raises MSC1121 for an unknown name, MSC0001 to MSC0003 and MSC1120 for an invalid file.
    """
    if is_file(name):
        return _read(Path(name))
    if name not in cluster_names():
        message = f"there is no cluster '{name}'; there are {', '.join(cluster_names())}"
        advice = did_you_mean(name, cluster_names()) or f"a cluster of your own is a file, NAME{SUFFIX}"
        raise MscError(Diagnostic("MSC1121", message, help=advice))
    return _ready(name)


@cache
def _ready(name: str) -> Cluster:
    return _read(_FOLDER / f"{name}{SUFFIX}")


def _read(path: Path) -> Cluster:
    text = read_source(path)
    return _cluster_of(path.stem, parse(text, str(path), _CODE), Source(text, str(path), _CODE))


def _cluster_of(name: str, figures: Figures, source: Source) -> Cluster:
    reader = Reader(source, _TABLES, "cluster")
    reader.check_names(figures, {"title", *_TABLES}, ())
    for table in ("device", "flops", "efficiency", "link"):
        if not figures.get(table):
            source.fail(
                f"the cluster has no table '{table}'", (), help="docs/parallel.md lists the tables of a cluster"
            )
    plain = {
        key: reader.table(figures[key], _TABLES[key], (key,)) for key in _TABLES if key != "link" and key in figures
    }
    title = figures.get("title", name)
    if not isinstance(title, str):
        source.fail("title is a string", ("title",))
    links = cast("tuple[Link, ...]", reader.named(figures, "link"))
    if not plain["device"]:
        source.fail("the driver keeps all of the memory", ("device", "reserved"))
    return Cluster(name, title, plain["device"], plain["flops"], plain["efficiency"], links, plain.get("host"))


MEASURED = "# Written by msc parallel measure.\n\n"
"""How files of measured clusters begin."""


def is_measured(path: Path) -> bool:
    """Whether a file is of a measured cluster. Raises OSError."""
    with opened(path) as file:
        return file.read(len(MEASURED)) == MEASURED.encode()


def cluster_text(cluster: Cluster) -> str:
    """The file of a cluster."""
    tables: dict[str, Any] = {"device": cluster.device, "flops": cluster.peaks, "efficiency": cluster.efficiency}
    tables |= {f"link.{link.name}": link for link in cluster.links}
    if cluster.host is not None:
        tables["host"] = cluster.host
    lines = [f'title = "{cluster.title}"']
    for title, table in tables.items():
        values = {f.name: getattr(table, f.name) for f in fields(table) if f.name != "name"}
        lines += ["", f"[{title}]"]
        lines += [
            f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v:_}" if isinstance(v, int) else f"{k} = {v:.4g}"
            for k, v in values.items()
        ]
    return "\n".join(lines) + "\n"
