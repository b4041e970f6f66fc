"""What is written is what runs: the loops of the loop stage, and what they request, are those of each kernel's tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.vector import ReductionOp
from xdsl.ir import Block as IrBlock
from xdsl.ir import Operation, SSAValue

from msc.dialects.loop import ForOp, LoopKind, PrefetchOp, StoreOp
from msc.dialects.loop.attributes import LOOP_SCHEDULE
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.ir.typed import is_vector
from msc.poly.schedule_tree.nodes import Block, Loop, Run, Tree, all_blocks, blocks, loops
from msc.poly.schedule_tree.parts import label
from msc.poly.schedule_tree.text import from_lines
from tests.schedules.records import layers

PRODUCT = """
func.func @main(%x: tensor<384x512xf32>, %w: tensor<512x640xf32>, %m: tensor<384x640xf32>) -> tensor<384x640xf32> {
  %p = ms.matmul %x, %w
  %y = ms.sub %m, %p
  func.return %y : tensor<384x640xf32>
}
"""
CONVOLUTION = """
func.func @main(%x: tensor<1x16x30x30xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<1x32x28x28xf32> {
  %c = ms.conv2d %x, %w
  %y = ms.relu %c
  func.return %y : tensor<1x32x28x28xf32>
}
"""
ROWS = """
func.func @main(%x: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024xf32>) {
  %y = ms.softmax %x {axis = -1}
  %s = ms.reduce_sum %x {axis = 0}
  func.return %y, %s : tensor<1024x1024xf32>, tensor<1024xf32>
}
"""
SUMS = """
func.func @main(%x: tensor<96x5000xf32>, %w: tensor<5000x80xf32>) -> (tensor<96x80xf32>, tensor<96xf32>) {
  %p = ms.matmul %x, %w
  %n = ms.relu %x
  %s = ms.reduce_sum %n {axis = 1}
  func.return %p, %s : tensor<96x80xf32>, tensor<96xf32>
}
"""
MODELS = {"product": PRODUCT, "convolution": CONVOLUTION, "rows": ROWS, "sums": SUMS, **layers()}
OF_CODE = ("copy", "line", "chain", "part")
"""Loops over elements that are copied, lines, accumulators of a sum, and the block of a local array."""


@dataclass(frozen=True)
class Named:
    """A loop: what it runs over, and its mark."""

    axis: str
    mark: str

    def runs_as(self, written: Named) -> bool:
        marks = ("", "unroll") if written.mark == "vector" else (written.mark,)
        return self.axis == written.axis and self.mark in marks


Path_ = tuple[Named, ...]


@pytest.fixture(scope="module", params=list(MODELS))
def functions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[func.FuncOp]:
    """The functions of a model's kernels at the end of the loop stage, for two threads."""
    path = Path(tmp_path_factory.mktemp("loops")) / "model.mir"
    path.write_text(MODELS[cast(str, request.param)], "utf-8")
    options = CompileOptions(march="x86-64-v3", threads=2)
    module = compile_model(str(path), options).module
    return [op for op in module.walk() if isinstance(op, func.FuncOp) and LOOP_SCHEDULE in op.attributes]


def tree_of(function: func.FuncOp) -> Tree:
    lines = cast("ArrayAttr[StringAttr]", function.attributes[LOOP_SCHEDULE])
    return from_lines([line.data for line in lines])


def tree_paths(block: Block, around: Path_ = ()) -> Iterator[Path_]:
    """The loops around each statement, with their marks."""
    for node in block.nodes:
        if isinstance(node, Run):
            yield around
        here = (*around, Named(label(node.axis), node.mark)) if isinstance(node, Loop) else around
        for each in blocks(node):
            yield from tree_paths(each, here)


def loop_paths(block: IrBlock, around: Path_ = ()) -> Iterator[tuple[Path_, StoreOp]]:
    """The loops around each store, those of code left out. Vectors are loops of their own, or none."""
    for op in block.ops:
        if isinstance(op, StoreOp):
            yield around, op
        elif isinstance(op, ForOp):
            name, kind = op.label.data if op.label is not None else "i", op.kind.data
            mark = "" if kind is LoopKind.SEQUENTIAL else kind.value
            here = around if name.startswith(OF_CODE) else (*around, Named(name, mark))
            yield from loop_paths(op.body.block, here)


def is_in(path: Path_, whole: Path_) -> bool:
    """Whether a path is another one without loops of one iteration. Vectors are a loop, or up to eight written out."""
    left: Iterator[Named] = iter(whole)
    return all(any(loop.runs_as(each) for each in left) for loop in path)


def is_of_vectors(path: Path_) -> bool:
    return any(loop.mark == "vector" for loop in path)


def may_leave_one(tree: Tree, path: Path_) -> bool:
    """Whether a single element may be left of the vectors of a path: of halves of a vector, and halves of these."""
    along = {loop.axis for loop in path if loop.mark == "vector"}
    extents = [axis.extent for axis in tree.axes if label(axis.name) in along]
    tiles = [loop.tile for loop in loops(tree) if label(loop.axis) in along and loop.tile is not None]
    return any(size % 2 for size in (*extents, *tiles))


def sums_lanes(value: SSAValue) -> bool:
    """Whether a value is a sum over the lanes of a vector, or added to what was there."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return isinstance(owner, ReductionOp) or any(isinstance(v.owner, ReductionOp) for v in owner.operands)


def test_loops_are_those_of_the_tree_in_its_order(functions: Sequence[func.FuncOp]) -> None:
    assert functions
    for function in functions:
        whole = list(tree_paths(tree_of(function).body))
        for path, _ in loop_paths(function.body.block):
            assert any(is_in(path, each) for each in whole), (path, whole)


def test_vectors_are_those_of_the_tree(functions: Sequence[func.FuncOp]) -> None:
    """Stores of one element are of loops that are no vectors, of sums over the lanes of one, or what vectors leave."""
    for function in functions:
        tree = tree_of(function)
        whole, used = list(tree_paths(tree.body)), set[Path_]()
        for path, store in loop_paths(function.body.block):
            around = [each for each in whole if is_in(path, each)]
            vectors = is_vector(store.value.type) or sums_lanes(store.value)
            alike = {each for each in around if is_of_vectors(each) == vectors}
            assert alike or (not vectors and any(may_leave_one(tree, each) for each in around)), (path, around)
            used |= alike
        assert used >= set(whole)


def test_what_the_tree_unrolls_is_unrolled(functions: Sequence[func.FuncOp]) -> None:
    for function in functions:
        said, done = (
            {loop.axis for path in paths for loop in path if loop.mark == "unroll"}
            for paths in (tree_paths(tree_of(function).body), (path for path, _ in loop_paths(function.body.block)))
        )
        along = {loop.axis for path in tree_paths(tree_of(function).body) for loop in path if loop.mark == "vector"}
        assert said <= done <= said | along


def test_threads_share_the_loop_that_the_tree_says(functions: Sequence[func.FuncOp]) -> None:
    for function in functions:
        said, done = (
            {loop for path in paths for loop in path if loop.mark == "parallel"}
            for paths in (tree_paths(tree_of(function).body), (path for path, _ in loop_paths(function.body.block)))
        )
        assert done == said


def test_what_the_tree_prefetches_is_requested_and_nothing_else(functions: Sequence[func.FuncOp]) -> None:
    for function in functions:
        clauses = [prefetch for block in all_blocks(tree_of(function).body) for prefetch in block.prefetches]
        buffers = {op.source for op in function.walk() if isinstance(op, PrefetchOp)}
        assert len(buffers) == len({prefetch.array for prefetch in clauses})


def test_some_kernel_shares_and_some_kernel_prefetches(tmp_path: Path) -> None:
    path = tmp_path / "product.mir"
    path.write_text(PRODUCT, "utf-8")
    module = compile_model(str(path), CompileOptions(march="x86-64-v3", threads=2)).module
    assert any(isinstance(op, PrefetchOp) for op in module.walk())
    assert any(isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL for op in module.walk())
