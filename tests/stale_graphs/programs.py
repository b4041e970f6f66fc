"""Random programs of things that are read and changed, and the comparison of graph mode with PyNative mode."""

# Values of the programs under test are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import linecache
import random
import shutil
import tempfile
import textwrap
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import msc
from msc import nn
from tests.stale_graphs.code_and_cells import CELLS, EFFECTS, MORE
from tests.stale_graphs.things import THINGS

IMPORTS = """
import array, collections, contextlib, contextvars, copy, dataclasses, decimal, enum, fractions, functools
import importlib.util, itertools, json, logging, math, operator, os, pathlib, random, re, statistics, sys, threading
import types, weakref
import numpy as np
import msc
from msc import Tensor, nn, ops
"""

ERRORS = (Exception,)
"""What programs raise is compared, whatever it is."""

PLACES = (
    "y = y * 1.0 + (READ)",
    "y = y + [READ for _ in range(2)][1]",
    "y = y + ((READ) if y.shape[0] == 3 else 0.0)",
    "y = y + (lambda: READ)()",
    "y = y + helper%(x)",
    "y = y + functools.partial(helper%, x)()",
    "y = y + Holder%().get(x)",
    "y = y + sum((READ) for _ in range(1))",
    "for _ in range(2):\n    y = y + (READ)",
    "try:\n    y = y + (READ)\nfinally:\n    y = y * 1.0",
    "if x.sum() > -1e9:\n    y = y + (READ)",
    "while y.sum() < -1e9:\n    y = y + 1.0\ny = y + (READ)",
    "def local%(x):\n    return READ\ny = y + local%(x)",
    "if float(y.sum()) > -1e9:\n    y = y + (READ)",
    "y = y + (READ)\ny = y * Tensor(np.ones(3, np.float32))",
)


@dataclass(frozen=True)
class Program:
    """A module with a function `f`, statements that change what it reads, and an expression for what it changes."""

    text: str
    changes: tuple[str, ...]
    state: str

    def __str__(self) -> str:
        return "\n".join([self.text, *(f"# change: {c}" for c in self.changes), f"# state: {self.state}"])


def random_program(seed: int) -> Program:
    """Of one to three things, each read at a place and changed in a way; three calls between changes and one more."""
    choice = random.Random(seed)
    setup, body, changes, states = [IMPORTS], ["y = x"], list[str](), list[str]()
    pool = (*THINGS, *MORE, *EFFECTS, *CELLS * 4)
    for number in range(choice.choice((1, 1, 2, 3))):
        thing = choice.choice(pool)
        named = [text.replace("#", str(number)) for text in (thing.setup, choice.choice(thing.reads), thing.state)]
        place = choice.choice(PLACES).replace("%", str(number))
        setup.append(named[0])
        if "helper" in place:
            setup.append(f"def helper{number}(x):\n    return {named[1]}")
        if "Holder" in place:
            setup.append(f"class Holder{number}:\n    def get(self, x):\n        return {named[1]}")
        body.append(place.replace("READ", named[1]))
        count = choice.choice((1, 2, 2))
        changes += [choice.choice(thing.changes).replace("#", str(number)) for _ in range(count)]
        states.append(named[2])
    choice.shuffle(changes)
    function = "def f(x):\n" + textwrap.indent("\n".join([*body, "return y"]), "    ")
    return Program("\n".join([*setup, function]), tuple(changes), f"({', '.join(states)},)")


def outcomes(program: Program, seed: int, graph: bool, backend: str) -> list[Any]:
    """What the calls give: an array, or the name of an error; then the state that they leave."""
    name = f"<stale program {seed} {'graph' if graph else 'pynative'}>"
    linecache.cache[name] = (len(program.text), None, program.text.splitlines(True), name)
    scope: dict[str, Any] = {"__name__": f"stale_program_{seed}_{graph}", "FOLDER": tempfile.mkdtemp()}
    found: list[Any] = []
    try:
        exec(compile(program.text, name, "exec", dont_inherit=True), scope)
        called = msc.jit(scope["f"], backend=backend) if graph else scope["f"]
        x = msc.Tensor(np.array([1.0, 2.0, -3.0], np.float32))
        for change in ("", "", *program.changes, ""):
            try:
                exec(change, scope)
            except ERRORS as error:
                found.append(type(error).__name__)
            found.append(_outcome(called, x))
        found.append(eval(program.state, scope))
    finally:
        shutil.rmtree(scope["FOLDER"])
    return found


def _outcome(called: Any, x: Any) -> Any:
    try:
        result = called(x)
    except ERRORS as error:
        return f"error {type(error).__name__}"
    return np.asarray(result.asnumpy() if isinstance(result, msc.Tensor) else result, np.float64)


def same(a: Any, b: Any) -> bool:
    """Whether two outcomes are equal, but for rounding; signs of zeros count."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)
    return type(a) is type(b) and a == b


@contextmanager
def as_it_was() -> Generator[None]:
    """Within, programs may change the library's classes and the state of the process."""
    construct = nn.ReLU.construct
    np.random.seed(0)
    random.seed(0)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        nn.ReLU.construct = construct


def difference(seed: int, backend: str = "interpreter") -> str | None:
    """How the modes differ on a program, with its text; None if they do not."""
    program = random_program(seed)
    found: list[list[Any]] = []
    for graph in (False, True):
        with as_it_was():
            found.append(outcomes(program, seed, graph, backend))
    eager, graph_mode = found
    if len(eager) == len(graph_mode) and all(map(same, eager, graph_mode)):
        return None
    return f"program {seed}:\n{program}\nPyNative {eager}\ngraph    {graph_mode}"
