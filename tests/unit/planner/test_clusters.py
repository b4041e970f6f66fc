"""Clusters are files: ready ones are right, wrong ones are refused at the line that is wrong."""

from pathlib import Path

import pytest

from msc.planner import collectives
from msc.planner.cluster import cluster_named, cluster_names, cluster_text
from msc.planner.collectives import RankGroup
from msc.support.diagnostics import MscError


@pytest.mark.parametrize("name", cluster_names())
def test_a_ready_cluster_is_its_own_file(name: str, tmp_path: Path) -> None:
    cluster = cluster_named(name)
    path = tmp_path / f"{name}.toml"
    path.write_text(cluster_text(cluster))
    assert cluster_named(str(path)) == cluster
    assert cluster.free_memory > 0


def test_sizes_of_ready_clusters() -> None:
    sizes = {name: cluster_named(name).devices for name in cluster_names()}
    assert sizes.items() >= {"host-8": 8, "ascend910b-8": 8, "ascend910b-1024": 1024}.items()
    assert cluster_named("a100").links[0].size == 8


GOOD = cluster_text(cluster_named("host-8"))


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("[flops]", "[flop]", "[flop]"),
        ("matrix = 0.7", "matrix = 7", "matrix = 7"),
        ("size = 8", 'size = "8"', 'size = "8"'),
        ('topology = "ring"', 'topology = "tree"', 'topology = "tree"'),
        ("reserved = 0", "reserved = 4_294_967_296", "reserved = 4_294_967_296"),
        ("latency = 2e-05\n", "", "[link.host]"),
        ("[device]", "[device", "[device"),
    ],
)
def test_a_wrong_file_is_refused_at_its_line(old: str, new: str, at: str, tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "mine.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(MscError) as caught:
        cluster_named(str(path))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "MSC1120"
    assert diagnostic.location is not None
    assert diagnostic.location.line == path.read_text().splitlines().index(at) + 1


def test_unknown_names_are_refused() -> None:
    with pytest.raises(MscError, match=r"MSC1121.*a100"):
        cluster_named("a10")


def test_a_cluster_without_a_host_places_nothing_there(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD[: GOOD.index("[host]")])
    with pytest.raises(MscError, match="MSC1121"):
        cluster_named(str(path)).copy_seconds(1)


LARGE = 1e12
"""So many bytes that latency does not count."""


@pytest.mark.parametrize(("kind", "factor"), [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)])
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_rings_within_a_node(kind: collectives.Kind, factor: int, ranks: int) -> None:
    cluster = cluster_named("a100")
    expected = factor * (ranks - 1) / ranks * LARGE / cluster.links[0].rate
    assert collectives.seconds(cluster, kind, LARGE, RankGroup(ranks)) == pytest.approx(expected, rel=1e-3)


def test_a_group_over_nodes_sends_less_over_slow_links_if_it_has_more_ranks_in_each() -> None:
    cluster = cluster_named("a100")
    alone, packed = (collectives.seconds(cluster, "all_reduce", LARGE, RankGroup(32, stride)) for stride in (8, 1))
    slow = cluster.links[1].rate
    assert alone == pytest.approx(2 * 31 / 32 * LARGE / slow, rel=1e-3)
    assert packed == pytest.approx(2 * 7 / 8 * LARGE / cluster.links[0].rate + 2 * 3 / 4 * LARGE / 8 / slow, rel=1e-3)


def test_latency_counts_messages() -> None:
    ring, switch = (cluster_named(name) for name in ("host-8", "ascend910b-8"))
    assert collectives.seconds(ring, "all_gather", 1e-9, RankGroup(8)) == pytest.approx(7 * ring.links[0].latency)
    assert collectives.seconds(switch, "all_gather", 1e-9, RankGroup(8)) == pytest.approx(3 * switch.links[0].latency)
    assert collectives.seconds(ring, "all_reduce", 1, RankGroup(1)) == 0
