"""Small kernels written by hand, and what they do one statement instance at a time: the oracle of polyhedral tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TypeAlias

import islpy as isl
from xdsl.ir.affine import AffineExpr, AffineMap

from msc.poly.compute import Combine, affine_map, dims
from msc.poly.model import Array, ArrayKind, KernelModel, KernelStatement
from msc.poly.nest import Body, ForLoop, Instance, Nest
from msc.poly.scalar import Constant, Read, Scalar, apply, reads

Point: TypeAlias = tuple[int, ...]
At: TypeAlias = tuple[int, Point]
"""A statement instance, or an element of an array."""


def array(*shape: int, kind: ArrayKind = "internal") -> Array:
    return Array(shape, "f32", kind)


def read(number: int, rank: int, *index: AffineExpr | int) -> Read:
    return Read(number, affine_map(rank, index), "f32")


def statement(
    extents: Sequence[int], target: int, write: Sequence[AffineExpr | int], body: Scalar, combine: Combine | None = None
) -> KernelStatement:
    names = tuple("ijklm"[: len(extents)])
    return KernelStatement(tuple(extents), names, target, affine_map(len(extents), write), body, combine, 0)


def matmul_relu(m: int = 3, n: int = 5, k: int = 4) -> KernelModel:
    """S0: c = 0; S1: c += a b; S2: y = max(c, 0)."""
    i, j, r = dims(3)
    arrays = (array(m, k, kind="input"), array(k, n, kind="input"), array(m, n, kind="output"), array(m, n))
    zero = Constant(0.0, "f32")
    return KernelModel(
        arrays,
        (
            statement((m, n), 3, (i, j), zero),
            statement((m, n, k), 3, (i, j), apply("mul", read(0, 3, i, r), read(1, 3, r, j)), "add"),
            statement((m, n), 2, (i, j), apply("max", read(3, 2, i, j), zero)),
        ),
        ("matmul", "relu"),
    )


def stencil(n: int = 7) -> KernelModel:
    """S0: t[i] = x[i]; S1: y[i] = t[i] + t[i + 1]."""
    (i,) = dims(1)
    return KernelModel(
        (array(n + 1, kind="input"), array(n, kind="output"), array(n + 1)),
        (
            statement((n + 1,), 2, (i,), read(0, 1, i)),
            statement((n,), 1, (i,), apply("add", read(2, 1, i), read(2, 1, i + 1))),
        ),
        ("copy", "add"),
    )


def padded(n: int = 5) -> KernelModel:
    """S0: y = 0 everywhere; S1: y[i + 1, 2 j] = x[i, j]."""
    i, j = dims(2)
    return KernelModel(
        (array(n, n, kind="input"), array(n + 2, 2 * n, kind="output")),
        (
            statement((n + 2, 2 * n), 1, (i, j), Constant(0.0, "f32")),
            statement((n, n), 1, (i + 1, j * 2), read(0, 2, i, j)),
        ),
        ("pad",),
    )


def gathered(n: int = 4) -> KernelModel:
    """S0: t[i] = x[i]; S1: y[i] = t[places[i]]."""
    (i,) = dims(1)
    place = Read(1, affine_map(1, (i,)), "i64")
    chosen = Read(3, affine_map(1, (0,)), "f32", ((0, place),))
    return KernelModel(
        (array(n, kind="input"), Array((n,), "i64", "input"), array(n, kind="output"), array(n)),
        (statement((n,), 3, (i,), read(0, 1, i)), statement((n,), 2, (i,), chosen)),
        ("copy", "gather"),
    )


def transposed(m: int = 3, n: int = 4) -> KernelModel:
    """S0: t = x; S1: y = t transposed; S2: z[j] is the sum of y over i."""
    i, j = dims(2)
    return KernelModel(
        (array(m, n, kind="input"), array(n, m, kind="output"), array(n), array(m, n)),
        (
            statement((m, n), 3, (i, j), read(0, 2, i, j)),
            statement((n, m), 1, (i, j), read(3, 2, j, i)),
            statement((n,), 2, (i,), Constant(0.0, "f32")),
            statement((n, m), 2, (i,), read(1, 2, i, j), "add"),
        ),
        ("copy", "transpose", "sum"),
    )


def staged_product(m: int = 3, n: int = 5, k: int = 4) -> KernelModel:
    """S0: t = b; S1: y = 0; S2: y += a t."""
    i, j, r = dims(3)
    row, column = dims(2)
    arrays = (array(m, k, kind="input"), array(k, n, kind="input"), array(m, n, kind="output"), array(k, n))
    return KernelModel(
        arrays,
        (
            statement((k, n), 3, (row, column), read(1, 2, row, column)),
            statement((m, n), 2, (i, j), Constant(0.0, "f32")),
            statement((m, n, k), 2, (i, j), apply("mul", read(0, 3, i, r), read(3, 3, r, j)), "add"),
        ),
        ("copy", "matmul"),
    )


def joined(n: int = 3) -> KernelModel:
    """t = concat(x, y); out[i] = t[i + 1], which both write."""
    (i,) = dims(1)
    arrays = (array(n, kind="input"), array(n, kind="input"), array(2 * n - 2, kind="output"), array(2 * n))
    return KernelModel(
        arrays,
        (
            statement((n,), 3, (i,), read(0, 1, i)),
            statement((n,), 3, (i + n,), read(1, 1, i)),
            statement((2 * n - 2,), 2, (i,), read(3, 1, i + 1)),
        ),
        ("concat", "slice"),
    )


KERNELS = {f.__name__: f() for f in (matmul_relu, stencil, padded, gathered, transposed, staged_product, joined)}


def evaluated(map_: AffineMap, point: Point) -> Point:
    return tuple(map_.eval(point, ()))


def instances(model: KernelModel) -> Iterator[At]:
    """In program order."""
    for number, s in enumerate(model.statements):
        for point in product(*(range(n) for n in s.extents)):
            yield number, point


def elements_read(model: KernelModel, number: int, point: Point) -> set[At]:
    s = model.statements[number]
    found = {(s.target, evaluated(s.write, point))} if s.combine else set[At]()
    for r in reads(s.body):
        if r.indirect:
            found |= {(r.operand, place) for place in product(*(range(n) for n in model.arrays[r.operand].shape))}
        else:
            found.add((r.operand, evaluated(r.index, point)))
    return found


def element_written(model: KernelModel, number: int, point: Point) -> At:
    s = model.statements[number]
    return s.target, evaluated(s.write, point)


def flow_pairs(model: KernelModel) -> set[tuple[At, At]]:
    """Each read with every write of its element before it."""
    writers: dict[At, list[At]] = {}
    pairs: set[tuple[At, At]] = set()
    for at in instances(model):
        pairs |= {(writer, at) for e in elements_read(model, *at) for writer in writers.get(e, ())}
        writers.setdefault(element_written(model, *at), []).append(at)
    return pairs


def conflicts(model: KernelModel) -> Iterator[tuple[At, At]]:
    """Pairs in program order that touch one element, at least one writing it; updates of one place excepted."""
    order = list(instances(model))
    touched = [(elements_read(model, *at), element_written(model, *at)) for at in order]
    for second in range(len(order)):
        for first in range(second):
            (reads_, write), (later_reads, later_write) = touched[first], touched[second]
            update = order[first][0] == order[second][0] and model.statements[order[first][0]].combine is not None
            if not update and (write in later_reads or later_write in reads_ or write == later_write):
                yield order[first], order[second]


def pairs_of(union: isl.UnionMap) -> set[tuple[At, At]]:
    """Every pair of a finite relation between statement instances."""
    found: set[tuple[At, At]] = set()

    def visit(map_: isl.Map) -> None:
        source, sink = (int(map_.get_tuple_name(t)[1:]) for t in (isl.dim_type.in_, isl.dim_type.out))
        split = map_.dim(isl.dim_type.in_)

        def point(p: isl.Point) -> None:
            rank = split + map_.dim(isl.dim_type.out)
            values = tuple(int(p.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(rank))
            found.add(((source, values[:split]), (sink, values[split:])))

        map_.wrap().foreach_point(point)

    union.foreach_map(visit)
    return found


def executed(nests: Sequence[Nest], variables: tuple[int, ...] = ()) -> Iterator[At]:
    """The instances that a nest runs, in order."""
    for nest in nests:
        match nest:
            case Instance():
                yield nest.statement, tuple(e.eval(variables, ()) for e in nest.index)
            case Body():
                yield from executed(nest.inside, variables)
            case ForLoop():
                low, high = nest.lower.eval(variables, ()), nest.upper.eval(variables, ())
                for value in range(low, high):
                    yield from executed(nest.body, (*variables, value))
