"""Collectives: what all ranks compute together in the interpreter, at each stage, and over MPI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

import msc
from msc.dialects.arrays import Array
from msc.dialects.ranks import run_ranks
from msc.driver.compile import compile_model
from msc.driver.options import CompileOptions
from msc.driver.passes.registry import new_context
from msc.graph.autodiff.grad import Grad
from msc.interp import evaluate, evaluate_loops
from msc.parallel.traffic import passed
from msc.support.diagnostics import MscError
from tests.unit.parallel.programs import module_from, mpirun, needs_mpi, random_inputs, results

GROUPS = "ranks = [0, 2, 3, 1], groups = 2"
"""{0, 2} and {3, 1}: neither neighbours nor in order."""


def program(operation: str, result: str, type_: str = "4x6xf32", name: str = "x") -> str:
    return (
        f'func.func @main(%x: tensor<{type_}> {{ms.name = "{name}"}}) -> tensor<{result}> {{\n'
        f"  %y = {operation} : (tensor<{type_}>) -> tensor<{result}>\n  func.return %y : tensor<{result}>\n}}\n"
    )


def expected(kind: str, values: list[Array], place: int) -> Array:
    match kind:
        case "sum":
            return values[0] + values[1]
        case "max":
            return np.maximum(*values)
        case "gather":
            return np.concatenate(values, 1)
        case "scatter":
            return np.split(values[0] + values[1], 2, 1)[place]
        case "exchange":
            return np.concatenate([np.split(value, 2, 0)[place] for value in values], 1)
        case "root":
            return values[1]
        case _:
            return np.split(values[place], 2, 1)[place]


CASES = {
    "sum": (f"ms.all_reduce %x {{{GROUPS}}}", "4x6xf32"),
    "max": (f'ms.all_reduce %x {{{GROUPS}, reduce = "max"}}', "4x6xf32"),
    "gather": (f"ms.all_gather %x {{{GROUPS}, axis = 1}}", "4x12xf32"),
    "scatter": (f"ms.reduce_scatter %x {{{GROUPS}, axis = 1}}", "4x3xf32"),
    "exchange": (f"ms.all_to_all %x {{{GROUPS}, split = 0, concat = 1}}", "2x12xf32"),
    "root": (f"ms.broadcast %x {{{GROUPS}, root = 1}}", "4x6xf32"),
    "slice": (f"ms.all_slice %x {{{GROUPS}, axis = 1}}", "4x3xf32"),
}


@pytest.mark.parametrize("kind", CASES)
def test_meaning(kind: str) -> None:
    module = module_from(program(*CASES[kind]))
    assert str(module_from(str(module))) == str(module)
    inputs = random_inputs(4, (4, 6))
    found = results(module, inputs)
    for group in ((0, 2), (3, 1)):
        for place, rank in enumerate(group):
            values = [inputs[member][0] for member in group]
            np.testing.assert_array_equal(found[rank][0], expected(kind, values, place))


def test_send_recv_gives_zeros_where_nobody_sends() -> None:
    module = module_from(program("ms.send_recv %x {ranks = [0, 2], to = [1, 0]}", "4x6xf32"))
    inputs = random_inputs(4, (4, 6))
    found = [result for (result,) in results(module, inputs)]
    for result, source in zip(found, [inputs[2][0], inputs[0][0], 0, 0], strict=True):
        np.testing.assert_array_equal(result, np.zeros((4, 6)) + source)


LINEAR = [kind for kind in CASES if kind not in ("max", "slice")]


@pytest.mark.parametrize("kind", LINEAR)
def test_gradient_is_the_adjoint(kind: str) -> None:
    """Summed over the ranks, <C(x), y> = <x, C*(y)>."""
    module, adjoint = (module_from(program(*CASES[kind])) for _ in range(2))
    Grad(sens=True).apply(new_context(), adjoint)
    xs = random_inputs(4, (4, 6))
    forward = [z for (z,) in results(module, xs)]
    ys = [y[: z.shape[0], : z.shape[1]] for z, (y,) in zip(forward, random_inputs(4, (4, 12)), strict=True)]
    backward = results(adjoint, [[x, y] for (x,), y in zip(xs, ys, strict=True)])
    there = sum(float((z * y).sum()) for z, y in zip(forward, ys, strict=True))
    assert there == sum(float((x * g).sum()) for (x,), (g,) in zip(xs, backward, strict=True))


@pytest.mark.parametrize(
    "operation", [f"ms.all_slice %x {{{GROUPS}}}", f'ms.reduce_scatter %x {{{GROUPS}, reduce = "max"}}']
)
def test_no_gradient(operation: str) -> None:
    with pytest.raises(MscError, match="MSC0414"):
        Grad().apply(new_context(), module_from(program(operation, "2x6xf32")))


ALL = 'func.func @main(%x: tensor<4x6xf32> {ms.name = "x"}) -> (RESULTS) {\nBODY}\n'


def all_of_them() -> str:
    """One program with each collective."""
    cases = [*CASES.values(), ("ms.send_recv %x {ranks = [0, 2], to = [1, 0]}", "4x6xf32")]
    body = "".join(f"  %{i} = {op} : (tensor<4x6xf32>) -> tensor<{type_}>\n" for i, (op, type_) in enumerate(cases))
    types = ", ".join(f"tensor<{type_}>" for _, type_ in cases)
    names = ", ".join(f"%{i}" for i in range(len(cases)))
    return ALL.replace("RESULTS", types).replace("BODY", f"{body}  func.return {names} : {types}\n")


def test_loop_stage_means_the_same(tmp_path: Path) -> None:
    (tmp_path / "all.mir").write_text(all_of_them(), "utf-8")
    loops = compile_model(str(tmp_path / "all.mir"), CompileOptions(), stop_after="loop").module
    inputs = random_inputs(4, (4, 6))
    for graph, loop in zip(
        results(module_from(all_of_them()), inputs),
        run_ranks(4, lambda rank: evaluate_loops(loops, inputs[rank], {})),
        strict=True,
    ):
        for a, b in zip(graph, loop, strict=True):
            np.testing.assert_array_equal(a, b)


@needs_mpi
def test_c_over_mpi(tmp_path: Path) -> None:
    """Each rank computes what the interpreter does, and passes to MPI the bytes that are predicted."""
    (tmp_path / "all.mir").write_text(all_of_them(), "utf-8")
    msc.compile(tmp_path / "all.mir", use_cache=False).save(tmp_path / "all.so")
    inputs = random_inputs(4, (4, 6))
    for rank, (x,) in enumerate(inputs):
        np.save(tmp_path / f"x{rank}.npy", x)
    (tmp_path / "run.py").write_text(RUN, "utf-8")
    library = ["mpicc", "-shared", "-fPIC", "-o", "count.so", str(Path(__file__).parent / "count_calls.c")]
    subprocess.run(library, cwd=tmp_path, check=True)
    counted = ["env", f"LD_PRELOAD={tmp_path / 'count.so'}", sys.executable, "run.py"]
    ran = mpirun(4, counted, tmp_path)
    assert ran.returncode == 0, ran.stderr
    for rank, arrays in enumerate(results(module_from(all_of_them()), inputs)):
        with np.load(tmp_path / f"y{rank}.npz") as found:
            for name, array in zip(found.files, arrays, strict=True):
                np.testing.assert_array_equal(found[name], array)
        predicted = [f"{each.call} {each.bytes}" for each in passed(module_from(all_of_them()))]
        assert (tmp_path / f"calls{rank}.txt").read_text("utf-8").splitlines() == predicted


RUN = """
import os
import numpy as np
import msc
rank = os.environ["OMPI_COMM_WORLD_RANK"]
np.savez(f"y{rank}.npz", *map(np.asarray, msc.load("all.so")(np.load(f"x{rank}.npy"))))
"""


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ("ms.all_reduce %x {ranks = [0, 0]}", "4x6xf32"),
        ("ms.all_reduce %x {ranks = [0, 1, 2], groups = 2}", "4x6xf32"),
        ('ms.all_reduce %x {ranks = [0, 1], reduce = "mean"}', "4x6xf32"),
        ("ms.reduce_scatter %x {ranks = [0, 1, 2, 3], axis = 1}", "4x1xf32"),
        ("ms.broadcast %x {ranks = [0, 1], root = 2}", "4x6xf32"),
        ("ms.send_recv %x {ranks = [0, 1], to = [2]}", "4x6xf32"),
    ],
)
def test_wrong_collectives_are_refused(operation: str, result: str) -> None:
    with pytest.raises((MscError, VerifyException)):
        module_from(program(operation, result))


def test_ranks_that_do_not_meet_end_in_words() -> None:
    sums, gathers = (module_from(program(*CASES[kind])) for kind in ("sum", "gather"))
    modules = [sums, sums, gathers, sums]
    inputs = random_inputs(4, (4, 6))
    with pytest.raises(MscError, match=r"MSC1104.*ms.all_(reduce|gather)"):
        run_ranks(4, lambda rank: evaluate(modules[rank], inputs[rank], {}))
    with pytest.raises(MscError, match=r"MSC1104.*have ended"):
        run_ranks(4, lambda rank: evaluate(sums, inputs[rank], {}) if rank else ())
    with pytest.raises(MscError, match="MSC1104"):
        evaluate(sums, inputs[0], {})


def test_other_targets_refuse_ranks(tmp_path: Path) -> None:
    (tmp_path / "a.mir").write_text(program(*CASES["sum"]), "utf-8")
    with pytest.raises(MscError, match="MSC1103"):
        compile_model(str(tmp_path / "a.mir"), CompileOptions(target="ascend910b1"), stop_after="gk")


def test_missing_mpi_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mir").write_text(program(*CASES["sum"]), "utf-8")
    monkeypatch.setenv("MPICC", "no-such-mpicc")
    with pytest.raises(MscError, match="MSC1105"):
        msc.compile(tmp_path / "a.mir", use_cache=False)
