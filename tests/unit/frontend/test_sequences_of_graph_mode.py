"""What compiled code makes of `zip`, `map`, `filter`, `enumerate`, `range` and generator expressions: sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msc import Tensor, float32, jit

ROW = Tensor([1.0, 2.0], float32)
MADE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "zip": (lambda x: zip((1, 2), (x, 3), strict=False), ((1, ROW), (2, 3))),
    "map": (lambda x: map(abs, (x, -2)), (ROW, 2)),
    "filter": (lambda x: filter(None, (0, 1, 2)), [1, 2]),
    "enumerate": (lambda x: enumerate((x, 2)), ((0, ROW), (1, 2))),
    "generator": (lambda x: (i * x for i in (1,)), (ROW,)),
}


def _same(a: Any, b: Any) -> bool:
    if isinstance(b, Tensor):
        return isinstance(a, Tensor) and a.asnumpy().tolist() == b.asnumpy().tolist()
    if type(b) not in (tuple, list):
        return a == b
    return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_a_sequence(name: str) -> None:
    make, expected = MADE[name]

    @jit
    def made(x: Tensor) -> Any:
        return make(x), {"inside": make(x)}

    for _ in range(2):
        result, inside = made(ROW)
        assert _same(result, expected)
        assert _same(inside["inside"], expected)


@pytest.mark.parametrize("name", MADE)
def test_it_has_a_length_and_items_and_gives_its_items_again(name: str) -> None:
    make, expected = MADE[name]

    @jit
    def looked_at(x: Tensor) -> Any:
        made = make(x)
        return len(made), made[-1], list(made)

    assert _same(looked_at(ROW), (len(expected), expected[-1], list(expected)))


def test_ranges_are_given_out_as_tuples_and_an_iterator_that_has_begun_gives_the_rest() -> None:
    @jit
    def mixed(x: Tensor) -> Any:
        pairs = zip((1, 2, 3), (4, 5, 6), strict=True)
        first = next(pairs)
        return range(3), first, pairs, x

    assert mixed(ROW)[:3] == ((0, 1, 2), (1, 4), ((2, 5), (3, 6)))


def test_a_union_of_classes_is_several() -> None:
    class Kind:
        pass

    @jit
    def which(x: Any, y: Tensor) -> Tensor:
        return y + 1 if isinstance(x, tuple | list) else y + 2 if isinstance(x, (Kind | str, float)) else y

    one = Tensor([1.0])
    assert [which(x, one).asnumpy().item() for x in ((1,), Kind(), 0.5, 3)] == [2, 3, 3, 1]
