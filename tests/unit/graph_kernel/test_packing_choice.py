"""How products read right operands that calls compute is predicted to take the fewest cycles, and keeps the meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from msc.analysis.kernels import kernels_in
from msc.dialects.gk import KernelOp
from msc.dialects.gk.attributes import GK_REASONS
from msc.graph_kernel.fusion.cluster_kernels import ClusterKernels
from msc.graph_kernel.layout.pack_operands import PackOperands
from msc.graph_kernel.layout.packing_choice import PackingChoice
from msc.support import forked
from tests.unit.graph_kernel.graphs import context, for_machine, function, random_inputs, results, run


def product(batch: int, rows: int, steps: int, columns: int, dtype: str = "f32") -> ModuleOp:
    """A product by a transposed operand that a call gives."""
    arguments = f"%x: tensor<{batch}x{rows}x{steps}x{dtype}>, %r: tensor<{batch}x{columns}x{steps}x{dtype}>"
    return function(arguments, "%y = ms.batch_matmul %x, %r {transpose_b = true}")


def packed(module: ModuleOp, march: str, threads: int = 1) -> tuple[str, str]:
    """The names of the operations of a product's kernels, and the reasons of the last."""
    kernels = kernels_in(run(for_machine(module, march, threads), ClusterKernels(), PackOperands()))
    names = " ".join(op.name for kernel in kernels for op in kernel.body.block.ops)
    return f"{len(kernels)} {names}", str(kernels[-1].attributes.get(GK_REASONS))


def test_places_follow_the_width_of_vectors(tmp_path: Path) -> None:
    narrow = tmp_path / "narrow.toml"
    narrow.write_text('base = "x86-64-v4"\n[vectors]\nbits = 128\n', encoding="utf-8")
    assert packed(product(12, 49, 32, 49), "x86-64-v4")[0].startswith("1 ms.identity")
    assert packed(product(12, 49, 32, 49), str(narrow))[0].startswith("2 ")


def test_places_do_not_depend_on_the_number_of_threads() -> None:
    assert packed(product(12, 49, 32, 49), "x86-64-v4", 2) == packed(product(12, 49, 32, 49), "x86-64-v4")


def test_reasons_say_the_cycles_of_each_place() -> None:
    _, reasons = packed(product(12, 49, 32, 49), "x86-64-v4")
    assert "right operand packed a panel at a time: " in reasons
    assert "if packed by a kernel in front" in reasons
    assert "if as it lies" in reasons


def test_a_product_that_is_as_fast_as_arithmetic_allows_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, predicted = list[object](), PackingChoice._cycles  # pyright: ignore[reportPrivateUsage]

    def counted(self: PackingChoice, kernel: KernelOp, place: object) -> float:
        asked.append(place)
        predicted(self, kernel, place)  # pyright: ignore[reportArgumentType]
        return 1.0

    monkeypatch.setattr(PackingChoice, "_cycles", counted)
    monkeypatch.setattr(forked, "_processors", lambda: 1)
    packed(product(12, 49, 32, 49), "x86-64-v4")
    assert len(asked) == 1


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3), st.integers(32, 40), st.integers(1, 6), st.integers(17, 70), st.booleans(), st.data())
def test_every_place_keeps_the_meaning(
    batch: int, rows: int, steps: int, columns: int, turned: bool, data: st.DataObject
) -> None:
    shape = f"{columns}x{steps}" if turned else f"{steps}x{columns}"
    moved = f"{steps}x{columns}" if turned else f"{columns}x{steps}"
    arguments = f"%x: tensor<{batch}x{rows}x{steps}xi32>, %r: tensor<{batch}x{moved}xi32>"
    body = f"%t = ms.transpose %r {{perm = [0, 2, 1]}} : (tensor<{batch}x{moved}xi32>) -> tensor<{batch}x{shape}xi32>"
    module = function(
        arguments, f"{body}\n%y = ms.batch_matmul %x, %t {{transpose_b = {'true' if turned else 'false'}}}"
    )
    inputs = random_inputs(module)
    clustered, expected = run(for_machine(module, "x86-64-v4"), ClusterKernels()), results(module, inputs)

    def drawn(*_: object) -> float:
        return float(data.draw(st.integers(100, 103))) * data.draw(st.integers(1, 3))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PackingChoice, "_cycles", drawn)
        patch.setattr(forked, "_processors", lambda: 1)
        PackOperands().apply(context(), clustered)
    clustered.verify()
    np.testing.assert_array_equal(results(clustered, inputs), expected)
