"""One rank's program: what the ranks compute together is what one computes; the collectives are the expected ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from msc.dialects.ms.collectives import CollectiveOp
from msc.driver.passes.registry import new_context
from msc.parallel.partition import Partition
from msc.parallel.propagate_layouts import PropagateLayouts
from msc.support.diagnostics import MscError
from tests.unit.parallel import random_partitions
from tests.unit.parallel.programs import module_from


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int) -> None:
    random_partitions.check(random_partitions.random_graph(seed))


def collectives(arguments: str, body: str, result: str, mesh: str = "dp=2,tp=2") -> list[str]:
    """The collectives of the program that a rank runs on its parts."""
    text = (
        f'builtin.module attributes {{ms.mesh = "{mesh}"}} {{\n  func.func @main({arguments}) -> ({result}) {{\n'
        f"{body}\n  }}\n}}\n"
    )
    module = module_from(text)
    PropagateLayouts().apply(new_context(), module)
    Partition(local=True).apply(new_context(), module)
    module.verify()
    return [op.name.removeprefix("ms.") for op in module.walk() if isinstance(op, CollectiveOp)]


MLP = """
    %h = ms.matmul %x, %w
    %a = ms.relu %h
    %y = ms.matmul %a, %v
    func.return %y : tensor<8x16xf32>"""


@pytest.mark.parametrize(
    ("x", "w", "v", "result", "expected"),
    [
        ("[dp, _]", "[_, _]", "[_, _]", "[dp, _]", []),
        ("[_, _]", "[_, tp]", "[tp, _]", "[_, _]", ["all_reduce"]),
        ("[dp, _]", "[_, tp]", "[tp, _]", "[dp, _]", ["all_reduce"]),
        ("[_, _]", "[_, tp]", "[tp, _]", "[tp, _]", ["reduce_scatter"]),
    ],
)
def test_columns_then_rows(x: str, w: str, v: str, result: str, expected: Sequence[str]) -> None:
    arguments = (
        f'%x: tensor<8x16xf32> {{ms.sharding = "{x}"}}, %w: tensor<16x32xf32> {{ms.sharding = "{w}"}}, '
        f'%v: tensor<32x16xf32> {{ms.sharding = "{v}"}}'
    )
    assert collectives(arguments, MLP, f'tensor<8x16xf32> {{ms.sharding = "{result}"}}') == expected


def test_data_parallel_gradient_is_reduced_once() -> None:
    """The gradient of a weight sums over the batch, which the ranks share."""
    arguments = '%x: tensor<8x16xf32> {ms.sharding = "[dp, _]"}, %g: tensor<8x4xf32> {ms.sharding = "[dp, _]"}'
    body = "    %d = ms.matmul %x, %g {transpose_a = true}\n    func.return %d : tensor<16x4xf32>"
    assert collectives(arguments, body, "tensor<16x4xf32>") == ["all_reduce"]
    assert collectives(arguments, body, 'tensor<16x4xf32> {ms.sharding = "[dp, _]"}') == ["reduce_scatter"]


def test_strategies_of_mindspore() -> None:
    """((4,1),(1,1)) and then ((1,1),(1,4)): one AllGather."""
    arguments = "%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %v: tensor<16x8xf32>"
    body = """
    %h = ms.matmul %x, %w {ms.shard = "[d, _], [_, _]"}
    %y = ms.matmul %h, %v {ms.shard = "[_, _], [_, d]"}
    func.return %y : tensor<8x8xf32>"""
    assert collectives(arguments, body, 'tensor<8x8xf32> {ms.sharding = "[_, d]"}', "d=4") == ["all_gather"]


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ("[dp, _], [dp, _]", "MSC1106"),
        ("[dp, tp], [_, _]", "MSC1106"),
        ("[dp, tp, _], [_, _]", "MSC1101"),
        ("[q, _]", "MSC1100"),
    ],
)
def test_marks_that_are_refused(mark: str, code: str) -> None:
    arguments, body = "%x: tensor<8x16xf32>, %w: tensor<16x16xf32>", "\n    func.return %h : tensor<8x16xf32>"
    with pytest.raises(MscError, match=code):
        collectives(arguments, f'    %h = ms.matmul %x, %w {{ms.shard = "{mark}"}}{body}', "tensor<8x16xf32>")


def test_without_layouts_nothing_is_partitioned() -> None:
    text = 'builtin.module attributes {ms.mesh = "d=2"} {\n  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n'
    module = module_from(f"{text}    %y = ms.relu %x\n    func.return %y : tensor<4xf32>\n  }}\n}}\n")
    with pytest.raises(MscError, match="MSC1107"):
        Partition().apply(new_context(), module)
