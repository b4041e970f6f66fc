"""The checks by suite: ONNX's node cases and light models, operations, random graphs, loops, networks, ..."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
from hypothesis import Phase, given, seed, settings

from msc.backends.registry import DEFAULT, find_backend
from msc.driver.models.reading_models import LoadedModel, read_model
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.importers.imported import Imported
from msc.schedule import threads as thread_sharing
from tests.conformance.backend import PREPARE, Array, MscBackend, Run, Specialised, named
from tests.conformance.expectations import read_expectations
from tests.conformance.suite import RANDOM, Case, cases
from tests.switched.networks import networks
from tests.switched.steps import steps
from tests.switched.trying import Check, Compile
from tests.unit.compiled import test_open_sizes as open_sizes
from tests.unit.compiled.effort import EFFORT
from tests.unit.compiled.operations import cases_of
from tests.unit.compiled.programs import Case as Operation
from tests.unit.compiled.programs import interpreted, parsed, program_text
from tests.unit.compiled.random_graphs import programs
from tests.unit.compiled.test_control_flow import NESTED, READ_AND_WRITTEN, SCAN, numbers
from tests.unit.compiled.test_operations import LARGE_CASES, arguments, compare
from tests.unit.compiled.test_random_graphs import assert_near, random_inputs
from tests.unit.compiled.values import inputs

TABLE = find_backend("cpu").table

Compare: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], None]

RANDOM_PROGRAMS = 60
"""Each of four graphs."""


def _of_onnx(kind: str) -> Iterator[Check]:
    """The cases of the ONNX suite of one kind that pass with all optimisations on."""
    misses = read_expectations("c")
    return (_of_case(case) for case in cases(frozenset({kind})) if case.name not in misses)


def _of_case(case: Case) -> Check:
    def run(compile: Compile) -> None:
        def execute(imported: Imported) -> Run:
            function = compile(LoadedModel.in_memory(imported, find_backend(DEFAULT), "model.onnx"), CompileOptions())
            return lambda inputs: named(imported, function.results(**inputs))

        with (
            patch.object(MscBackend, "executor", "c"),
            patch.dict(PREPARE, {"c": partial(Specialised, execute=execute)}),
        ):
            case.run()

    return Check(case.name, run)


def _of_text(name: str, text: str, inputs: Sequence[Array], compare: Compare, threads: int = 1) -> Check:
    def run(compile: Compile) -> None:
        model = LoadedModel("test.mir", parsed(text), TABLE["graph"], Path(), {}, new_context())
        compare(compile(model, CompileOptions(threads=threads)).results(*inputs), interpreted(text, inputs))

    return Check(name, run)


def _operations() -> Iterator[Check]:
    """Every operation in many shapes, the cases of one operation as one program; i8 beside f32, and large tensors."""
    for dtype in ("f32", "i8"):
        for name, group in groupby(sorted(cases_of(dtype)), lambda case: case[0].split()[0]):
            together = list(group)
            yield _of_operations(f"{name} {dtype}", together, arguments(together))
    for number, case in enumerate(LARGE_CASES):
        yield _of_operations(" ".join(case), [case], inputs(*case, number))


def _of_operations(name: str, group: Sequence[Operation], arrays: Sequence[Array]) -> Check:
    return _of_text(name, program_text(group), arrays, partial(compare, group))


def _graphs() -> Iterator[Check]:
    """Random programs, always the same; every other one for two threads, which share whatever they can."""
    texts: list[str] = []

    @seed(0)
    @settings(EFFORT, max_examples=RANDOM_PROGRAMS, phases=[Phase.generate], database=None)
    @given(programs())
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    for number, text in enumerate(dict.fromkeys(texts)):
        check = _of_text(f"graph {number}", text, random_inputs(text), assert_near, threads=1 + number % 2)
        yield Check(check.name, _sharing(check.run))


def _sharing(run: Callable[[Compile], None]) -> Callable[[Compile], None]:
    """With kernels shared between threads however small they are."""

    def shared(compile: Compile) -> None:
        with patch.object(thread_sharing.Surroundings, "cost", return_value=float("-inf")):
            run(compile)

    return shared


def _control_flow() -> Iterator[Check]:
    true, two = np.array(True), np.array(2)
    yield _of_text("scan", SCAN, [numbers(6, 2, 37), numbers(2, 37), numbers(37, 37)], assert_near)
    yield _of_text("entries", READ_AND_WRITTEN, [numbers(6, 5), two], assert_near)
    yield _of_text("nested", NESTED, [numbers(4, 9), true, two], assert_near)


def _open_sizes() -> Iterator[Check]:
    """Models compiled for ranges of sizes, called at the least, the largest, and between."""
    return (Check(name, lambda compile, name=name: _at_sizes(name, compile)) for name in open_sizes.MODELS)


def _at_sizes(name: str, compile: Compile) -> None:
    ranges = open_sizes.ranges(name)
    with tempfile.TemporaryDirectory() as folder:
        path, options = Path(folder) / "model.mir", CompileOptions(dims=ranges)
        path.write_text(open_sizes.MODELS[name].text, "utf-8")
        function = compile(read_model(str(path), options), options)
        for part in (0, 1 / 2, 1):
            sizes = {size: low + int(part * (high - low)) for size, (low, high) in ranges.items()}
            open_sizes.check(path, function, sizes)


SUITES: Mapping[str, Callable[[], Iterator[Check]]] = {
    "node": lambda: _of_onnx("node"),
    "networks": networks,
    "steps": steps,
    "light models": lambda: _of_onnx(RANDOM),
    "operations": _operations,
    "random graphs": _graphs,
    "control flow": _control_flow,
    "open sizes": _open_sizes,
}
"""By name; light models have random weights, under which a permuted weight shows."""


def chosen(
    suites: Sequence[str], pattern: str, part: tuple[int, int], done: Collection[tuple[str, str]]
) -> Iterator[tuple[str, Check]]:
    """The checks of some suites whose name a pattern finds; of each suite a part, without those already `done`."""
    first, count = part
    for suite in suites:
        fitting = (check for check in SUITES[suite]() if re.search(pattern, check.name))
        yield from ((suite, check) for check in islice(fitting, first, None, count) if (suite, check.name) not in done)
