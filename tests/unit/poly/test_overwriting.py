"""Which internal arrays may lie in an output: found in time that grows with the kernel, not with its paths."""

from __future__ import annotations

from msc.poly.compute import dims
from msc.poly.model import KernelModel
from msc.poly.overwriting import aliased_outputs
from msc.poly.scalar import apply
from msc.poly.schedule_tree.nodes import Axis, Block, Loop, Run, Tree
from tests.unit.poly.kernels import array, read, statement


def doubling(count: int) -> KernelModel:
    """Each array is the sum of both before it: the number of paths grows exponentially."""
    (i,) = dims(1)
    arrays = (
        array(4, kind="input"),
        array(4, kind="input"),
        *(array(4) for _ in range(count)),
        array(4, kind="output"),
    )
    statements = tuple(
        statement((4,), k, (i,), apply("add", read(k - 1, 1, i), read(k - 2, 1, i))) for k in range(2, len(arrays))
    )
    return KernelModel(arrays, statements, ("add",) * len(statements))


def test_every_array_is_looked_at_once() -> None:
    model = doubling(40)
    count = range(len(model.statements))
    schedule = Tree(
        tuple(Axis(f"i{k}", 4, {k: 0}) for k in count),
        Block(tuple(Loop(f"i{k}", Block((Run((k,)),))) for k in count)),
    )
    found = aliased_outputs(model, schedule, range(2, 42))
    assert set(found.values()) <= {42}
