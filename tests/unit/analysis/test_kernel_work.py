"""What is asked of a kernel's operations is asked once for as long as it does not change: counted, not timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from msc.analysis.kernel_model import kernel_model
from msc.analysis.layout_views import LayoutViews
from msc.analysis.patterns import AreaPattern, pattern_of
from msc.dialects.gk import KernelOp
from msc.graph_kernel import rematerialize
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from tests.unit.graph_kernel.graphs import function, run

BODY = """%a = ms.exp %x
%b = ms.mul %a, %x
%c = ms.matmul %b, %w
%d = ms.relu %c
%e = ms.add %d, %x
%f = ms.matmul %e, %w
%y = ms.add %f, %a"""


@pytest.fixture
def graph() -> ModuleOp:
    return function("%x: tensor<64x64xf32>, %w: tensor<64x64xf32>", BODY)


def counted(counts: Counter[object], function: Callable[[Operation], AreaPattern]) -> Callable[..., AreaPattern]:
    def count(op: Operation) -> AreaPattern:
        counts[op] += 1
        return function(op)

    return count


def test_a_model_finds_views_once(monkeypatch: pytest.MonkeyPatch, graph: ModuleOp) -> None:
    kernels = [op for op in run(graph, ClusterKernels()).walk() if isinstance(op, KernelOp)]
    counts, of = Counter[object](), LayoutViews.of

    def count(kernel: KernelOp) -> LayoutViews:
        counts[kernel] += 1
        return of(kernel)

    monkeypatch.setattr(LayoutViews, "of", count)
    for kernel in kernels:
        assert kernel_model(kernel).statements
    assert counts == Counter(kernels)


def test_whether_kernels_take_arguments_is_asked_of_operations_once(
    monkeypatch: pytest.MonkeyPatch, graph: ModuleOp
) -> None:
    module = run(graph, ClusterKernels())
    kernel = max((op for op in module.walk() if isinstance(op, KernelOp)), key=lambda k: len(k.inputs))
    counts = Counter[object]()
    monkeypatch.setattr(rematerialize, "pattern_of", counted(counts, pattern_of))
    for _ in range(2):
        for argument in kernel.body.block.args:
            rematerialize.may_compute(kernel, argument)
    assert counts
    assert set(counts.values()) == {1}


def test_a_kernel_that_changes_is_asked_again(monkeypatch: pytest.MonkeyPatch, graph: ModuleOp) -> None:
    module = run(graph, ClusterKernels())
    kernel = max((op for op in module.walk() if isinstance(op, KernelOp)), key=lambda k: len(k.inputs))
    argument = kernel.body.block.args[0]
    rematerialize.may_compute(kernel, argument)
    counts = Counter[object]()
    monkeypatch.setattr(rematerialize, "pattern_of", counted(counts, pattern_of))
    first = kernel.body.block.first_op
    assert first is not None
    first.attributes["changed"] = kernel.label
    rematerialize.may_compute(kernel, argument)
    assert counts
