"""How far apart the values of quotients are, against trying every iteration."""

from itertools import product

import numpy as np
from xdsl.ir.affine import AffineExpr

from msc.poly.affine import spread


def random_index(rng: np.random.Generator, depth: int) -> AffineExpr:
    if depth == 0:
        return AffineExpr.dimension(int(rng.integers(3))) * int(rng.integers(-3, 9)) + int(rng.integers(-4, 5))
    inner, number = random_index(rng, depth - 1), int(rng.integers(2, 9))
    match int(rng.integers(4)):
        case 0:
            return inner // number
        case 1:
            return inner % number
        case 2:
            return inner * number
        case _:
            return inner + random_index(rng, depth - 1)


def test_no_two_values_are_further_apart() -> None:
    rng, exact = np.random.default_rng(0), 0
    for _ in range(300):
        expr = random_index(rng, int(rng.integers(4)))
        outer = {0: range(0, 48, int(rng.choice([1, 6, 8, 12])))}
        inner = {1: range(int(rng.integers(1, 6))), 2: range(0, 8, 2)}
        found = [[expr.eval([at, *point], []) for point in product(inner[1], inner[2])] for at in outer[0]]
        widest = max(max(values) - min(values) for values in found)
        assert widest <= spread(expr, inner, outer)
        exact += widest == spread(expr, inner, outer)
    assert exact >= 150
