"""Several entry functions, arguments that a function updates, nested results: compiled as the interpreter says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msc
from msc.dialects.arrays import Array
from msc.driver.artifacts.emission import emit
from msc.driver.artifacts.forms import Output
from msc.driver.models.reading_models import read_model
from msc.driver.options import CompileOptions, Reporting
from msc.driver.verification.differential import Settings, verify_model
from msc.interp import evaluate
from msc.support.diagnostics import MscError

T = "tensor<4x3xf32>"

UPDATES = {
    "written where it was read": ("%n = ms.add %s, %x", "%n", {0: 1}),
    "read after the new value is known": ("%n = ms.add %s, %x\n%y = ms.matmul %s, %w", "%n, %y", {0: 1}),
    "read by another function of the new value": ("%n = ms.mul %s, %x\n%y = ms.sub %n, %s", "%y, %n", {1: 1}),
    "given back as it was, too": ("%n = ms.neg %s", "%n, %s", {0: 1}),
    "two that change places": ("%n = ms.neg %x", "%x, %s, %n", {0: 1, 1: 0}),
    "unchanged": ("%n = ms.neg %x", "%n, %s", {1: 1}),
    "of the other argument": ("%n = ms.neg %x", "%x, %n", {0: 1}),
    "one value for two": ("%n = ms.add %s, %x", "%n, %n", {0: 0, 1: 1}),
    "through a view": ("%v = ms.reshape %s {shape = [3, 4]}\n%a = ms.relu %v\n%n = ms.reshape %a {shape = [4, 3]}\n"
                       "%y = ms.transpose %v {perm = [1, 0]}", "%n, %y", {0: 1}),
    "a slice": ("%n = ms.insert_slice %s, %i, %r", "%n", {0: 1}),
    "a slice, and what it was": ("%n = ms.insert_slice %s, %i, %r\n%y = ms.add %n, %s", "%n, %y", {0: 1}),
    "a slice, and then more": ("%a = ms.insert_slice %s, %i, %r\n%n = ms.add %a, %x\n%y = ms.exp %a", "%n, %y", {0: 1}),
    "a slice in each iteration of what it was": (
        f"%n = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %x) -> ({T}) {{\n"
        f"%b = ms.insert_slice %s, %i, %r\n%d = ms.add %a, %b\nscf.yield %d : {T}\n}}", "%n", {0: 1},
    ),
    "a loop from the old value": (
        f"%n = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %s) -> ({T}) {{\n"
        f"%b = ms.mul %a, %x\n%d = ms.add %b, %x\nscf.yield %d : {T}\n}}", "%n", {0: 1},
    ),
    "a loop that reads the old value": (
        f"%n = scf.for %k = %c0 to %c3 step %c1 iter_args(%a = %s) -> ({T}) {{\n"
        f"%b = ms.mul %a, %s\nscf.yield %b : {T}\n}}\n%y = ms.neg %s", "%n, %y", {0: 1},
    ),
    "a branch": (
        f"%n = scf.if %t -> ({T}) {{\n%b = ms.mul %s, %x\nscf.yield %b : {T}\n}} else {{\nscf.yield %s : {T}\n}}",
        "%n", {0: 1},
    ),
}  # fmt: skip
"""Bodies, what they return, and which result updates which argument (0: x, 1: s)."""


def function(body: str, results: str, updates: dict[int, int], name: str = "main") -> str:
    count = results.count("%")
    types = [f"{T} {{ms.updates = {updates[k]}}}" if k in updates else T for k in range(count)]
    return f"""
  func.func public @{name}(%x: {T} {{ms.name = "x"}}, %s: {T} {{ms.name = "s"}}) -> ({", ".join(types)}) {{
    %w = ms.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]> : tensor<3x3xf32>
    %r = ms.constant dense<[1.5, -2.0, 4.0]> : tensor<3xf32>
    %i = ms.constant dense<2> : tensor<i64>
    %m = ms.reduce_max %x
    %l = ms.greater %m, %m
    %t = tensor.extract %l[] : tensor<i1>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    {body}
    func.return {results} : {", ".join([T] * count)}
  }}"""


NUMBERS = {name: f"f{k}" for k, name in enumerate(UPDATES)}


def module_of(names: Iterable[str]) -> str:
    functions = (function(*UPDATES[name], name=NUMBERS[name]) for name in names)
    return f"builtin.module @updates {{{''.join(functions)}\n}}\n"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All functions in one module: what one does must not depend on another."""
    path = tmp_path_factory.mktemp("entries") / "updates.mir"
    path.write_text(module_of(UPDATES), "utf-8")
    return path


@pytest.fixture(scope="module")
def compiled(path: Path) -> msc.CompiledModel:
    return msc.compile(path, use_cache=False)


def arrays() -> list[Array]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((4, 3)).astype(np.float32) for _ in range(2)]


@pytest.mark.parametrize("name", UPDATES)
def test_states_hold_the_new_values(name: str, path: Path, compiled: msc.CompiledModel) -> None:
    _, _, updates = UPDATES[name]
    module = read_model(str(path), CompileOptions()).module
    expected = evaluate(module, arrays(), {}, entry=NUMBERS[name])
    given = arrays()
    results = compiled[NUMBERS[name]].results(*given)
    for number, (got, wanted) in enumerate(zip(results, expected, strict=True)):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
        assert (number in updates) == any(got is array for array in given)
    for position, (now, before) in enumerate(zip(given, arrays(), strict=True)):
        if position not in updates.values():
            np.testing.assert_array_equal(now, before)


def test_every_stage_of_every_function_is_verified(tmp_path: Path) -> None:
    path, names = tmp_path / "updates.mir", ["a branch", "a slice, and then more"]
    path.write_text(module_of(names), "utf-8")
    checks = verify_model(str(path), CompileOptions(), Settings())
    assert {c.subject for c in checks if c.subject.startswith("@")} == {f"@{NUMBERS[name]}" for name in names}
    assert not [check for check in checks if check.diverges]


@pytest.fixture(scope="module")
def source(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C of all functions."""
    out = tmp_path_factory.mktemp("source") / "updates.c"
    emit(str(path), Output("c", out), CompileOptions(), Reporting())
    return out


def test_a_state_in_place_is_not_copied(source: Path) -> None:
    text = source.read_text("utf-8")
    for name in ("written where it was read", "a slice", "unchanged", "a loop from the old value"):
        body = text[text.index(f"int updates_{NUMBERS[name]}(") :]
        assert "s, 48)" not in body[: body.index("\n}")]


def test_a_header_declares_each_function(source: Path) -> None:
    folder = source.parent
    (folder / "main.c").write_text(
        '#include <stdio.h>\n#include "updates.h"\n'
        "int main(void)\n{\n    float x[12] = {1, 2}, s[12] = {3, 5};\n"
        "    static unsigned char memory[UPDATES_F0_WORKSPACE_BYTES + 64] __attribute__((aligned(64)));\n"
        "    if (updates_f0(x, s, memory) != UPDATES_OK)\n        return 1;\n"
        '    printf("%g %g %g\\n", s[0], s[1], s[2]);\n    return 0;\n}\n',
        "utf-8",
    )
    sources = ["main.c", "updates.c", "updates_weights.S"]
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-march=native"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", "program"], cwd=folder, check=True)
    done = subprocess.run(["./program"], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout == "4 7 0\n"


def test_what_cannot_be_updated_in_place_is_refused(compiled: msc.CompiledModel) -> None:
    x, s = arrays()
    for wrong in (np.asfortranarray(s), s.tolist()):
        with pytest.raises(MscError, match="MSC0614"):
            compiled["f0"](x, wrong)
    s.setflags(write=False)
    with pytest.raises(MscError, match="MSC0614"):
        compiled["f0"](x, s)


def test_functions_have_names(compiled: msc.CompiledModel) -> None:
    np.testing.assert_array_equal(compiled.f0(*arrays()), compiled["f0"](*arrays()))
    with pytest.raises(MscError, match="MSC0605"):
        compiled["f_0"](*arrays())
    with pytest.raises(AttributeError, match="no function"):
        compiled.absent()


STRUCTURE = {"dict": {"out": {"tuple": [0, {"list": [1, {"constant": "mean"}]}]}, "loss": {"scalar": 1}}}
STRUCTURED = f"""builtin.module @nested {{
  func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<f32>)
      attributes {{ms.structure = {json.dumps(json.dumps(STRUCTURE))}}} {{
    %y = ms.neg %x
    %s = ms.reduce_sum %x
    func.return %y, %s : tensor<2xf32>, tensor<f32>
  }}
}}
"""


def test_results_are_nested_as_the_function_returns_them(tmp_path: Path) -> None:
    path = tmp_path / "nested.mir"
    path.write_text(STRUCTURED, "utf-8")
    compiled = msc.compile(path, use_cache=False)
    compiled.save(tmp_path / "nested.so")
    for model in (compiled, msc.load(tmp_path / "nested.so")):
        found: Any = model(np.array([1, 2], np.float32))
        first, (second, word) = found["out"]
        np.testing.assert_array_equal(first, [-1, -2])
        assert (second.item(), word, found["loss"]) == (3.0, "mean", 3.0)
        assert isinstance(found["loss"], float)


@pytest.mark.parametrize(
    ("signature", "code"),
    [
        (f"(%x: {T}) -> ({T} {{ms.updates = 1}})", "MSC0205"),
        (f"(%x: {T}, %s: tensor<3xf32>) -> ({T} {{ms.updates = 1}})", "MSC0201"),
    ],
)
def test_updates_that_cannot_be_are_refused(signature: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.mir"
    path.write_text(f"func.func @main{signature} {{\n  func.return %x : {T}\n}}\n", "utf-8")
    with pytest.raises(MscError, match=code):
        msc.compile(path, use_cache=False)
