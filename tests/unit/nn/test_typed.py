"""What checkers of types are told: CI's run of pyright checks this file; its comments fail where there is no error."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import assert_type

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops


class Pair(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x: Tensor, scale: float = 1.0) -> tuple[Tensor, float]:
        return self.fc(x), scale


X = Tensor(np.ones((2, 3), np.float32))


def test_calls_have_the_types_of_construct() -> None:
    first, second = assert_type(Pair()(X, scale=2.0), tuple[Tensor, float])
    assert_type(nn.Dense(3, 2)(X), Tensor)
    assert (first.shape, second) == ((2, 2), 2.0)
    assert msc.compile(nn.Dense(3, 2), X)(X).shape == (2, 2)


def test_misspelt_names_are_errors_of_the_checker_too() -> None:
    with pytest.raises(AttributeError):
        nn.Dens  # pyright: ignore  # noqa: B018
    with pytest.raises(AttributeError):
        ops.rellu  # pyright: ignore  # noqa: B018
    with pytest.raises(AttributeError):
        msc.opss  # pyright: ignore  # noqa: B018
    with pytest.raises(TypeError):
        nn.Dense(3, 2)(X, X)  # pyright: ignore


def test_a_checker_knows_every_name_of_msc() -> None:
    """Names are imported when they are used; beside that they are written for checkers."""
    tree = ast.parse(Path(msc.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name))
    known = {
        alias.asname or alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    known |= {"ms_class", "ms_function"}
    public: set[str] = {*msc._EXPORTS, *msc._MODULES, "dtype"}  # pyright: ignore[reportPrivateUsage]
    assert known == public
