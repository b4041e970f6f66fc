"""Schedules as a person may write them: what is drawn at random is refused at a line, or computes what the kernel does.

What is drawn runs every statement once for each point: loops, tiles, cuts, marks, places and prefetches are random.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from msc.dialects.arrays import Array
from msc.driver.compile import compile_read
from msc.driver.models.reading_models import LoadedModel
from msc.driver.passes.registry import new_context
from msc.interp.loops import evaluate_loops
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError
from tests.unit.schedule.test_mutated_schedules import OPTIONS, TABLE

ROUNDS = 60


@dataclass(frozen=True)
class Kernel:
    """A kernel on f32 arrays: its body, its axes as they stand in a schedule, and what it computes."""

    inputs: tuple[str, ...]
    result: str
    body: str
    axes: str
    meaning: Callable[..., Array]

    def text(self, schedule: Sequence[str]) -> str:
        """A module with the kernel alone."""
        types = [f"tensor<{shape}>" for shape in self.inputs]
        arguments = ", ".join(f"%x{k}: {type_}" for k, type_ in enumerate(types))
        bound = ", ".join(f"%a{k} = %x{k} : {type_}" for k, type_ in enumerate(types))
        lines, result = ", ".join(f'"{line}"' for line in schedule), f"tensor<{self.result}>"
        return f"""func.func @main({arguments}) -> {result} {{
          %y = gk.kernel "k" ({bound}) -> {result} attributes {{gk.schedule = #gk.schedule<[{lines}]>}} {{
            {self.body}
            gk.yield %r : {result}
          }}
          func.return %y : {result}
        }}"""

    def values(self, seed: int) -> list[Array]:
        """Small integers, of which no sum is rounded."""
        rng = np.random.default_rng(seed)
        shapes = ([int(size) for size in re.findall(r"\d+(?=x)", shape)] for shape in self.inputs)
        return [rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes]

    def extents(self) -> dict[str, int]:
        return {name: int(extent) for name, extent in re.findall(r"axis (\w+) (\d+):", self.axes)}

    def statements(self) -> dict[str, set[int]]:
        """By axis the statements that it is a dimension of."""
        lines = (line.split() for line in self.axes.splitlines())
        return {words[1]: {int(word[1 : word.index(".")]) for word in words[3:]} for words in lines}


def biased_product(a: Array, b: Array, c: Array) -> Array:
    return a @ b + c


def less_maximum(a: Array) -> Array:
    return a - np.max(a, 1, keepdims=True)


def negated_transpose(a: Array, b: Array) -> Array:
    return -np.transpose(a @ b)


KERNELS = {
    "product": Kernel(
        ("7x5xf32", "5x11xf32", "11xf32"),
        "7x11xf32",
        """%0 = ms.matmul %a0, %a1 : (tensor<7x5xf32>, tensor<5x11xf32>) -> tensor<7x11xf32>
        %r = ms.add %0, %a2 : (tensor<7x11xf32>, tensor<11xf32>) -> tensor<7x11xf32>""",
        "axis n 11: S0.1 S1.1 S2.1\naxis m 7: S0.0 S1.0 S2.0\naxis k 5: S1.2",
        biased_product,
    ),
    "copy": Kernel(
        ("7x5xf32", "5x11xf32"),
        "7x11xf32",
        """%0 = ms.identity %a1 : (tensor<5x11xf32>) -> tensor<5x11xf32>
        %r = ms.matmul %a0, %0 : (tensor<7x5xf32>, tensor<5x11xf32>) -> tensor<7x11xf32>""",
        "axis n 11: S0.1 S1.1 S2.1 S3.1\naxis m 7: S1.0 S2.0 S3.0\naxis k 5: S0.0 S2.2",
        np.matmul,
    ),
    "rows": Kernel(
        ("5x19xf32",),
        "5x19xf32",
        """%0 = ms.reduce_max %a0 {axis = 1, keep_dims = true} : (tensor<5x19xf32>) -> tensor<5x1xf32>
        %r = ms.sub %a0, %0 : (tensor<5x19xf32>, tensor<5x1xf32>) -> tensor<5x19xf32>""",
        "axis m 5: S0.0 S1.0 S2.0\naxis n 19: S1.1 S2.1",
        less_maximum,
    ),
    "members": Kernel(
        ("6x5xf32", "5x10xf32"),
        "10x6xf32",
        """%0 = ms.matmul %a0, %a1 : (tensor<6x5xf32>, tensor<5x10xf32>) -> tensor<6x10xf32>
        %1 = gk.materialize %0 along [1] : tensor<6x10xf32>
        %2 = ms.transpose %1 {perm = [1, 0]} : (tensor<6x10xf32>) -> tensor<10x6xf32>
        %3 = gk.materialize %2 along [0] : tensor<10x6xf32>
        %r = ms.neg %3 : (tensor<10x6xf32>) -> tensor<10x6xf32>""",
        "axis n 10: S0.1 S1.1 S2.1 S3.0 S4.0\naxis m 6: S0.0 S1.0 S2.0 S3.1 S4.1\naxis k 5: S1.2",
        negated_transpose,
    ),
}
ARRAYS = {"product": ("t0",), "copy": ("t0", "t1"), "rows": ("t0",), "members": ("t0", "t1", "t2")}


@dataclass(frozen=True)
class At:
    """Where a block is drawn: the statements that run there, what is left of each axis, marks and places around."""

    statements: tuple[int, ...]
    left: Mapping[str, int]
    marks: frozenset[str] = frozenset()
    placed: Mapping[str, str] = field(default_factory=dict[str, str])
    depth: int = 0


class Draw:
    """A schedule of a kernel, block by block."""

    def __init__(self, name: str, seed: int) -> None:
        self._rng, self._arrays = random.Random(f"{name} {seed}"), ARRAYS[name]
        kernel = KERNELS[name]
        self._inputs = [f"in{k}" for k in range(len(kernel.inputs))]
        self._extents, self._statements = kernel.extents(), kernel.statements()
        everything = tuple(sorted(set[int]().union(*self._statements.values())))
        self.lines = [*kernel.axes.splitlines(), *self._block(At(everything, self._extents))]

    def _happens(self, chance: float) -> bool:
        return self._rng.random() < chance

    def _block(self, at: At) -> Iterator[str]:
        placed = dict(at.placed)
        for array in self._arrays:
            if self._happens(0.06 if array in placed else 0.08):
                scope = self._rng.choice(["register", "stack", "stack", "workspace", "out0"])
                scope += " partial" if array in placed and self._happens(0.5) else ""
                yield f"place {array} in {scope}"
                placed[array] = scope
        for array in self._inputs:
            if at.depth and self._happens(0.03):
                yield f"place {array} in {self._rng.choice(['stack', 'register'])}"
        opened = [name for name, left in at.left.items() if left != self._extents[name]]
        if opened and self._happens(0.05):
            ahead, axis = self._rng.randrange(4), self._rng.choice(opened)
            yield f"prefetch {self._rng.choice(self._inputs)} ahead {ahead} of {axis}"
        yield from self._nodes(replace(at, placed=placed))

    def _nodes(self, at: At) -> Iterator[str]:
        common = [a for a, left in at.left.items() if left and self._statements[a] >= set(at.statements)]
        if len(at.statements) > 1 and (not common or self._happens(0.3)):
            cut = self._rng.randrange(1, len(at.statements))
            for some in (at.statements[:cut], at.statements[cut:]):
                yield from self._nodes(replace(at, statements=some))
        elif not common or at.depth > 10:
            yield f"run {' '.join(f'S{s}' for s in at.statements)}"
        elif at.left[axis := self._rng.choice(common)] > 2 and self._happens(0.05):
            where = self._rng.randrange(1, at.left[axis])
            for line in (f"head {axis} to {where}", f"tail {axis} from {where}"):
                yield from self._inside(line, replace(at, depth=at.depth + 1))
        else:
            yield from self._loop(axis, at)

    def _loop(self, axis: str, at: At) -> Iterator[str]:
        tile = self._rng.randrange(1, at.left[axis] + 1) if at.depth < 6 and self._happens(0.3) else None
        last = sum(bool(left) for name, left in at.left.items() if self._statements[name] & set(at.statements)) == 1
        marks = ["", "", "", "unroll", "parallel"] + (["vector"] * (6 if last else 1) if tile is None else [])
        mark = "unroll" if "vector" in at.marks else self._rng.choice(marks)
        line = f"for {axis}{f' tile {tile}' if tile else ''}{f' {mark}' if mark else ''}"
        left = {**at.left, axis: tile or 0}
        yield from self._inside(line, replace(at, left=left, marks=at.marks | {mark}, depth=at.depth + 1))

    def _inside(self, line: str, at: At) -> Iterator[str]:
        yield line
        yield from (f"  {inner}" for inner in self._block(at))


def computed(kernel: Kernel, schedule: Sequence[str], values: Sequence[Array]) -> Array:
    """What the loops of a schedule compute, without a C compiler."""
    context, text = new_context(), kernel.text(schedule)
    module = parse_module(context, text, "k.gk.mir")
    made = compile_read(LoadedModel("k.gk.mir", module, TABLE["gk"], Path(), {}, context), OPTIONS, "loop")
    return evaluate_loops(made.module, values, {})[0]


@pytest.mark.parametrize("name", KERNELS)
def test_a_schedule_is_refused_at_a_line_or_right(name: str) -> None:
    kernel, right = KERNELS[name], 0
    for seed in range(ROUNDS):
        schedule, values = Draw(name, seed).lines, kernel.values(seed)
        refusal: MscError | None = None
        try:
            np.testing.assert_array_equal(computed(kernel, schedule, values), kernel.meaning(*values), strict=True)
            right += 1
        except MscError as error:
            refusal = error
        if refusal is not None:
            assert re.match(r"error\[MSC0408\].* cannot run: line \d+: ", str(refusal)), "\n".join(
                [str(refusal), *schedule]
            )
    assert right > 2


@pytest.mark.parametrize(
    ("name", "lines", "problem"),
    [
        (
            "product",
            ["for m, n vector", "  run S0", "for n vector, m, k", "  run S1", "for m, n", "  run S2"],
            "line 6: n is no vector loop: the loop over m inside it is not unrolled",
        ),
        (
            "product",
            ["for m, n vector", "  place t0 in stack", "  run S0", "  for k unroll", "    run S1", "  run S2"],
            "line 5: the lanes of n would share t0: place it around their loop",
        ),
        (
            "product",
            ["for m, n", "  place in2 in register", "  run S0", "for m, n, k", "  run S1", "for m, n", "  run S2"],
            "line 5: no statement of this block accesses in2",
        ),
        (
            "product",
            ["for m tile 4 parallel, m, n", "  place t0 in register", "  run S0", "  for k", "    run S1", "  run S2"],
            "line 4: threads share nothing: the loop has one whole tile",
        ),
        (
            "rows",
            """head m to 2
  head m to 4
    for m
      run S0
  tail m from 4
    for m
      run S0
tail m from 2
  for m
    run S0
for m, n
  run S1
for m, n
  run S2""".splitlines(),
            "line 4: axis m is cut between 1 and 1, not at 4",
        ),
        (
            "product",
            ["head m to 3", "  for m", "    place t0 in workspace"]
            + [f"    {line}" for line in ("for n", "  run S0", "  for k", "    run S1", "  run S2")]
            + ["tail m from 3", "  for m, n", "    run S0", "    for k", "      run S1", "    run S2"],
            "line 6: t0 is also used outside of this block: place it at the top",
        ),
        (
            "product",
            """place t0 in out0
for m tile 3
  place t0 in stack
  for m, n
    run S0
  for k, m, n
    run S1
  for m, n
    run S2""".splitlines(),
            "line 6: t0 goes back to out0 when this block ends, over what the block writes to out0",
        ),
        (
            "product",
            """for m tile 3
  place t0 in register
  for m unroll, n vector
    run S0
  for k, m, n vector
    run S1
  for m unroll, n vector
    run S2""".splitlines(),
            "line 5: a loop that is not unrolled goes over t0: registers have no index",
        ),
    ],
)
def test_clauses_that_cannot_be_honoured_are_errors(name: str, lines: list[str], problem: str) -> None:
    kernel = KERNELS[name]
    with pytest.raises(MscError, match=problem):
        computed(kernel, [*kernel.axes.splitlines(), *lines], kernel.values(0))


HALVES = [
    "head m to 3",
    "  for m, n",
    "    place t0 in {scope}",
    "    run S0",
    "    for k",
    "      run S1",
    "    run S2",
]
OTHERS = ["tail m from 3", "  for m, n", "    run S0", "    for k", "      run S1", "    run S2"]


@pytest.mark.parametrize("scope", ["register", "stack", "out0"])
def test_an_array_has_a_place_in_one_half_of_a_cut(scope: str) -> None:
    """In the other half it is in the workspace."""
    kernel = KERNELS["product"]
    lines = [*kernel.axes.splitlines(), *(line.format(scope=scope) for line in HALVES), *OTHERS]
    values = kernel.values(0)
    np.testing.assert_array_equal(computed(kernel, lines, values), kernel.meaning(*values))


def test_partial_sums_of_partial_sums_have_tails() -> None:
    """Of rows and of columns: what the inner tiles write fills the outer one."""
    kernel = KERNELS["product"]
    lines = """
place t0 in workspace
for m, n vector
  run S0
for k tile 4, n tile 8, m tile 5
  place t0 in stack partial
  for k tile 3, n tile 3, m tile 2
    place t0 in register partial
    for k, m unroll, n vector
      run S1
for m, n vector
  run S2"""
    values = kernel.values(0)
    result = computed(kernel, [*kernel.axes.splitlines(), *lines.strip().splitlines()], values)
    np.testing.assert_array_equal(result, kernel.meaning(*values))


OPEN = """builtin.module attributes {{ms.sizes = {{n = array<i64: 1, 20>}}}} {{
  func.func @main(%x: tensor<20x6xf32> {{ms.dims = ["n", ""]}}) -> tensor<6xf32> {{
    %0 = gk.kernel "max" (%x_1 = %x : tensor<20x6xf32>) -> tensor<6xf32> attributes {{
      gk.schedule = #gk.schedule<[{lines}]>, gk.sizes = {{n = array<i64: 1, 20>}},
      gk.valid = [[affine_map<(d0) -> (d0, 20)>, affine_map<(d0) -> (6, 6)>]]}} {{
      %1 = ms.reduce_max %x_1 {{axis = [0]}} : (tensor<20x6xf32>) -> tensor<6xf32>
      gk.yield %1 : tensor<6xf32>
    }}
    func.return %0 : tensor<6xf32>
  }}
}}
"""


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("place in0 in stack", "line 4: calls decide how many elements of in0 a copy would have"),
        ("prefetch in0 ahead 0 of n", "line 4: calls decide how many elements of in0 an iteration of n reads"),
    ],
)
def test_calls_do_not_decide_what_is_copied_or_prefetched(clause: str, problem: str) -> None:
    axes = ["axis n 6: S0.0 S1.1 S2.0", "axis k 20: S1.0"]
    lines = [*axes, "for n", f"  {clause}", "  run S0", "  for k", "    run S1", "  run S2"]
    context, text = new_context(), OPEN.format(lines=", ".join(f'"{line}"' for line in lines))
    module = parse_module(context, text, "k.gk.mir")
    with pytest.raises(MscError, match=problem):
        compile_read(LoadedModel("k.gk.mir", module, TABLE["gk"], Path(), {}, context), OPTIONS, "loop")
