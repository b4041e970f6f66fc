"""Proofs that kernels share: asked of isl once for a kind, and of what does not hold for the kind, for each."""

from __future__ import annotations

import pytest

from msc.poly.compute import dims
from msc.poly.dependences import dependences
from msc.poly.model import KernelModel
from msc.poly.schedule_tree import to_isl
from msc.poly.schedule_tree.nodes import ScheduleError
from msc.poly.schedule_tree.shared_proofs import prove_kind
from tests.unit.poly.kernels import array, matmul_relu, read, statement
from tests.unit.poly.trees import tree

PRODUCT = """
    axis m {m}: S0.0 S1.0 S2.0
    axis n {n}: S0.1 S1.1 S2.1
    axis k {k}: S1.2
    for m tile {tile}
      for m unroll, n vector
        run S0
      for k tile {block}
        for k, m unroll, n vector
          run S1
      for m unroll, n vector
        run S2
"""


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> list[KernelModel]:
    """The kernels for which isl made a tree."""
    made, result = list[KernelModel](), to_isl._Builder.result  # pyright: ignore[reportPrivateUsage]

    def counted(builder: to_isl._Builder) -> to_isl.Loops:  # pyright: ignore[reportPrivateUsage]
        made.append(builder._model)  # pyright: ignore[reportPrivateUsage]
        return result(builder)

    monkeypatch.setattr(to_isl._Builder, "result", counted)  # pyright: ignore[reportPrivateUsage]
    return made


def prove_product(m: int, n: int, k: int, tile: int, block: int) -> None:
    model = matmul_relu(m, n, k)
    prove_kind(model, dependences(model), tree(PRODUCT.format(m=m, n=n, k=k, tile=tile, block=block)))


def test_loops_that_end_elsewhere_and_tiles_of_sums_share_a_proof(trees: list[KernelModel]) -> None:
    """A tile that something is stored in is proved by itself, and so is a loop that ends within a tile."""
    prove_product(6, 16, 12, 3, 4)
    assert len(trees) == 1
    prove_product(9, 48, 30, 3, 10)
    assert len(trees) == 1
    prove_product(6, 16, 12, 2, 4)
    prove_product(7, 16, 12, 3, 4)
    prove_product(6, 16, 13, 3, 4)
    assert len(trees) == 4


def turned(n: int, ends: int) -> tuple[KernelModel, str]:
    """S0: t[4 i + 3 - j] = x[i, j], for j below an end; S1: y[i] = t[4 i + 3]."""
    i, j = dims(2)
    arrays = (array(n, ends, kind="input"), array(n, kind="output"), array(4 * n))
    first = statement((n, ends), 2, (i * 4 + 3 - j,), read(0, 2, i, j))
    model = KernelModel(arrays, (first, statement((n,), 1, (i,), read(2, 1, i * 4 + 3))), ("turn", "read"))
    return model, f"axis i {n}: S0.0 S1.0\naxis j {ends}: S0.1\nfor i\n  for j\n    run S0\n  run S1"


def test_what_holds_only_as_loops_end_early_is_proved_for_these(trees: list[KernelModel]) -> None:
    model, text = turned(5, 4)
    prove_kind(model, dependences(model), tree(text))
    assert len(trees) == 2
    model, text = turned(5, 5)
    with pytest.raises(ScheduleError, match="line 6: S1 runs before S0 has computed or read its data"):
        prove_kind(model, dependences(model), tree(text))


def test_a_schedule_that_breaks_a_dependence_is_refused() -> None:
    model = matmul_relu(6, 16, 12)
    lines = PRODUCT.format(m=6, n=16, k=12, tile=3, block=4)
    wrong = lines.replace("run S0", "run S3").replace("run S2", "run S0").replace("run S3", "run S2")
    with pytest.raises(ScheduleError, match="runs before"):
        prove_kind(model, dependences(model), tree(wrong))
