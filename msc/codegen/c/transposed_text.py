"""The inline functions that read rows of memory and transpose them, in registers, into vectors of columns.

Of 16 rows of 16 elements, one after the other, there are 256 loads and 240 instructions that put elements into vectors.
Rows that are loaded whole and transposed by shuffles of two vectors are 16 loads and 64 shuffles, which C compilers
also translate in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msc.codegen.c.part_text import SMALLEST_REGISTER_BITS
from msc.codegen.c.template import Template
from msc.codegen.c.types import INDEX_TYPE, CType
from msc.support.escaping import c_comment

Block: TypeAlias = tuple[int, int]
"""The first of some columns, and how many they are."""
STEPS = (1, 2)
"""Elements from one column to the next that there are functions for."""
_SIZES = (16, 8, 4, 2)
"""Columns that one function makes: of more, not all fit into registers."""


def column_blocks(count: int, type_: CType) -> list[Block]:
    """Blocks of `count` columns as vectors of a type, each of a size that a function has, or of one column.

    Rows of a block fill the smallest register, within which the first shuffles work.
    """
    blocks = list[Block]()
    start = 0
    while start < count:
        fitting = (n for n in _SIZES if _register(type_) <= n <= min(count - start, type_.lanes))
        blocks.append((start, next(fitting, 1)))
        start += blocks[-1][1]
    return blocks


def function_of(size: int, step: int) -> str:
    """The name of the template that makes so many columns, `step` elements apart."""
    return f"load_transposed_{'' if step == 1 else 'even_'}{size}"


def named_types(size: int, type_: CType) -> list[CType]:
    """The types that the function names: rows, and several of them in one vector."""
    return [CType(type_.base, lanes) for lanes in (size << k for k in range(8)) if lanes <= type_.lanes]


def _register(type_: CType) -> int:
    return SMALLEST_REGISTER_BITS // type_.bits


def _text(size: int, step: int, type_: CType) -> str:
    """The function: loads of rows, some of them joined in each vector, and stages of shuffles of two vectors."""
    rows = [f"r{k}" for k in range(type_.lanes)]
    statements = [f"{_declared(row, *_row(size, step, type_, k))};" for k, row in enumerate(rows)]
    joins, vectors = _joined(rows, size, type_)
    shuffles, columns = _transposed(vectors, type_)
    statements += [*joins, *shuffles, *(f"columns[{k}] = {vector};" for k, vector in enumerate(columns))]
    body = "\n".join(f"    {statement}" for statement in statements)
    first = "p[k], p[k + stride]" if step == 1 else f"p[{step} * k], p[{step} * k + stride]"
    return (
        f"{c_comment(f'columns[k]: {first}, ...; reads nothing after the last column.')}\n"
        f"static inline void {function_of(size, step)}_{{f}}({{v}} *columns, const {{e}} *p, {INDEX_TYPE} stride)\n"
        f"{{\n{body}\n}}\n"
    )


def _row(size: int, step: int, type_: CType, row: int) -> tuple[CType, str]:
    """The elements of a row, the last one of which is the last that is read."""
    type_ = CType(type_.base, size)
    start = f"p + {row} * stride"
    if step == 1:
        return type_, f"*(const {type_.name}_u *)({start})"
    taken = [*range(0, size, 2), *range(size + 1, 2 * size, 2)]
    both = f"*(const {type_.name}_u *)({start})", f"*(const {type_.name}_u *)({start} + {size - 1})"
    return type_, _shuffle(*both, taken)


def _joined(names: list[str], size: int, type_: CType) -> tuple[list[str], list[str]]:
    """Statements that join rows `size` apart to whole vectors, and the names of the vectors that these make."""
    statements = list[str]()
    for joined in named_types(size, type_)[1:]:
        pairs = [(names[k], names[k + size]) for k in range(len(names)) if not k // size % 2]
        names = [f"w{joined.lanes}_{k}" for k in range(len(pairs))]
        for name, pair in zip(names, pairs, strict=True):
            statements.append(f"{_declared(name, joined, _shuffle(*pair, range(joined.lanes)))};")
    return statements, names


def _transposed(vectors: list[str], type_: CType) -> tuple[list[str], list[str]]:
    """Statements that transpose vectors of rows into columns, and the names of these in order."""
    size, statements = len(vectors), list[str]()
    columns = [list(range(size))] * size  # of the first row in each vector, what its lanes hold
    for distance, masks in _stages(size, type_):
        made, moved = [""] * size, [list[int]()] * size
        for k in (k for k in range(size) if not k & distance):
            for place, mask in zip((k, k + distance), masks, strict=True):
                made[place] = f"v{distance}_{place}"
                shuffle = _shuffle(vectors[k], vectors[k + distance], mask)
                statements.append(f"{_declared(made[place], type_, shuffle)};")
                moved[place] = [
                    columns[k + distance * (lane // type_.lanes)][lane % type_.lanes] for lane in mask[:size]
                ]
        vectors, columns = made, moved
    return statements, [vector for _, vector in sorted(zip((c[0] for c in columns), vectors, strict=True))]


def _declared(name: str, type_: CType, value: str) -> str:
    return f"const {type_.name} {name} = {value}"


def _shuffle(a: str, b: str, lanes: Sequence[int]) -> str:
    return f"__builtin_shufflevector({a}, {b}, {', '.join(map(str, lanes))})"


def _stages(size: int, type_: CType) -> list[tuple[int, tuple[list[int], list[int]]]]:
    """Of each stage which vectors meet, those so far apart, and the lanes of both that make the one and the other.

    Within the smallest register, halves of two are interleaved; then every other register is taken of both.
    """
    lanes, register = type_.lanes, _register(type_)
    stages = list[tuple[int, tuple[list[int], list[int]]]]()
    distance = 1
    while distance < size:
        make: Callable[[int], list[int]] = (
            partial(_interleaved, lanes, register, distance)
            if distance < register
            else partial(_every_other, lanes, register, size)
        )
        stages.append((distance, (make(0), make(1))))
        distance *= 2
    return stages


def _interleaved(lanes: int, register: int, unit: int, half: int) -> list[int]:
    """Units of one half of each register of two vectors, in turns."""
    starts = [r + half * register // 2 + k for r in range(0, lanes, register) for k in range(0, register // 2, unit)]
    return [vector + start + k for start in starts for vector in (0, lanes) for k in range(unit)]


def _every_other(lanes: int, register: int, size: int, first: int) -> list[int]:
    """Of each row of two vectors every other register: those of one row, then those of the other's."""
    return [
        vector + row + r + k
        for row in range(0, lanes, size)
        for vector in (0, lanes)
        for r in range(first * register, size, 2 * register)
        for k in range(register)
    ]


TRANSPOSED_TEMPLATES = {function_of(n, step): Template(partial(_text, n, step)) for n in _SIZES for step in STEPS}
