"""Einstein sums as transposes, sums and batched matrix products."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from msc.dialects import ms
from msc.importers.onnx.node import Node
from msc.importers.onnx.operators.movement import transposed
from msc.importers.onnx.values import OnnxValue


@dataclass(frozen=True)
class Term:
    """A tensor whose axes are called by letters."""

    letters: tuple[str, ...]
    value: OnnxValue

    def size(self, letter: str) -> int:
        """The size of an axis; 1 if there is none."""
        return self.value.shape[self.letters.index(letter)] if letter in self.letters else 1


def einsum(node: Node, equation: str, values: list[OnnxValue]) -> OnnxValue:
    """The sum over products that `equation` says ("ij,jk->ik"; "..." stands for axes that broadcast)."""
    inputs, output = _letters(node, equation.replace(" ", ""), [v.rank for v in values])
    terms = [_diagonal(node, Term(letters, v)) for letters, v in zip(inputs, values, strict=True)]
    terms = [_summed(node, t, set(output).union(*(o.letters for o in terms if o is not t))) for t in terms]
    result = terms[0]
    for index, term in enumerate(terms[1:], 2):
        kept = set(output).union(*(t.letters for t in terms[index:]))
        result = _product(node, result, term, kept)
    result = _summed(node, result, set(output))
    return transposed(node, result.value, [result.letters.index(letter) for letter in output])


def _letters(node: Node, equation: str, ranks: list[int]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    left, arrow, right = equation.partition("->")
    words = left.split(",")
    if len(words) != len(ranks):
        raise node.failure("MSC0711", f"equation '{equation[:80]}' has {len(words)} terms, for {len(ranks)} inputs")
    free = max((r - len(w.replace("...", "")) for w, r in zip(words, ranks, strict=True) if "..." in w), default=0)
    inputs = [_axes(word, rank - len(word.replace("...", ""))) for word, rank in zip(words, ranks, strict=True)]
    if any(len(axes) != rank for axes, rank in zip(inputs, ranks, strict=True)):
        raise node.failure("MSC0711", f"equation '{equation[:80]}' does not fit inputs of ranks {ranks}")
    if arrow:
        return inputs, _axes(right, free)
    counts = Counter(letter for axes in inputs for letter in axes)
    dots = tuple(f"...{i}" for i in range(free))
    return inputs, (*dots, *sorted(c for c, n in counts.items() if n == 1 and not c.startswith(".")))


def _axes(word: str, free: int) -> tuple[str, ...]:
    """A word's letters; the axes of `...` are numbered from the last one."""
    before, dots, after = word.partition("...")
    return (*before, *(f"...{i}" for i in reversed(range(free)) if dots), *after)


def _diagonal(node: Node, term: Term) -> Term:
    """A letter twice in one term: its diagonal."""
    repeated = next((c for c, n in Counter(term.letters).items() if n > 1), None)
    if repeated is None:
        return term
    first, second = [i for i, c in enumerate(term.letters) if c == repeated][:2]
    rest = [i for i in range(term.value.rank) if i not in (first, second)]
    moved = transposed(node, term.value, [*rest, first, second])
    *lead, n, _ = node.shape_of(moved)
    flat = node.reshape(moved, (*lead, n * n))
    chosen = node(ms.GatherOp, flat, node.constant(node.arange(n) * (n + 1)), axis=-1)
    return _diagonal(node, Term((*(term.letters[i] for i in rest), repeated), chosen))


def _summed(node: Node, term: Term, kept: set[str]) -> Term:
    axes = [i for i, letter in enumerate(term.letters) if letter not in kept]
    if not axes:
        return term
    letters = tuple(c for c in term.letters if c in kept)
    return Term(letters, node(ms.ReduceSumOp, term.value, axis=axes))


def _product(node: Node, a: Term, b: Term, kept: set[str]) -> Term:
    """The product of two terms, summed over the letters that both have and nobody needs any more."""
    both = [c for c in a.letters if c in b.letters]
    summed = [c for c in both if c not in kept and a.size(c) == b.size(c)]
    batch = [c for c in both if c not in summed]
    rows = [c for c in a.letters if c not in both]
    columns = [c for c in b.letters if c not in both]
    left, right = _matrices(node, a, batch, rows, summed), _matrices(node, b, batch, summed, columns)
    y = node(ms.BatchMatmulOp, left, right)
    sizes = [max(a.size(c), b.size(c)) for c in batch]
    shape = (*sizes, *(a.size(c) for c in rows), *(b.size(c) for c in columns))
    result = Term((*batch, *rows, *columns), node.reshape(y, shape))
    return _summed(node, result, kept)


def _matrices(node: Node, term: Term, batch: list[str], rows: list[str], columns: list[str]) -> OnnxValue:
    moved = transposed(node, term.value, [term.letters.index(c) for c in (*batch, *rows, *columns)])
    matrix = (math.prod(map(term.size, rows)), math.prod(map(term.size, columns)))
    return node.reshape(moved, (*map(term.size, batch), *matrix))
