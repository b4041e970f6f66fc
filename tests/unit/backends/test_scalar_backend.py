"""The example of a back end from outside: found by its entry point, right on models, without a change in msc."""

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import msc
from msc.backends.registry import BACKENDS, backend_names, find_backend
from msc.driver.compile import compile_model, generate_c
from msc.driver.options import CompileOptions
from msc.ir.contracts import order_problems
from msc.support.diagnostics import MscError

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "scalar_backend"
SAMPLES = ("mlp", "lenet5", "attention")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path, with the metadata that an installer would make of its pyproject."""
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    info = tmp_path / "scalar_backend-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: scalar-backend\nVersion: 0.1.0\n", "utf-8")
    lines = [f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in named.items()) for group, named in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(EXAMPLE), *sys.path])
    importlib.invalidate_caches()
    forget()
    yield
    forget()
    sys.modules.pop("scalar_backend", None)


def forget() -> None:
    BACKENDS.forget()


def test_it_is_found_by_its_entry_point() -> None:
    assert backend_names()[0] == "cpu"
    assert backend_names()[-1] == "scalar"
    assert find_backend("scalar").summary == "plain scalar C"


def test_it_is_short() -> None:
    files = [path for path in EXAMPLE.glob("*.*") if path.is_file()]  # an installation leaves folders
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 300


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_compute_the_same(sample: str) -> None:
    path = str(ROOT / "samples" / sample / f"{sample}.mir")
    usual, scalar = msc.compile(path), msc.compile(path, target="scalar")
    rng = np.random.default_rng(1)
    inputs: list[Any] = [rng.standard_normal(cast("tuple[int, ...]", t.shape)).astype("f4") for t in usual.inputs]
    for expected, found in zip(usual.results(*inputs), scalar.results(*inputs), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5 * np.abs(expected).max())


def test_it_sorts_rows_whose_pairs_outgrow_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "order.mir"
    taken, given = "tensor<70001xi16>", "tensor<70001xi64>"
    order = f"%1 = ms.argsort %0 {{descending = true}} : ({taken}) -> {given}\n  func.return %1 : {given}"
    path.write_text(f"builtin.module {{\nfunc.func @main(%0: {taken}) -> {given} {{\n  {order}\n}}\n}}\n", "utf-8")
    rows = np.random.default_rng(2).integers(-1000, 1000, 70001).astype(np.int16)
    (found,) = msc.compile(str(path), target="scalar").results(rows)
    np.testing.assert_array_equal(found, np.argsort(-rows, kind="stable"))


def test_its_code_has_neither_vectors_nor_threads() -> None:
    path = str(ROOT / "samples" / "mlp" / "mlp.mir")
    compilation = compile_model(path, CompileOptions(target="scalar"))
    operations = {op.name for op in compilation.module.walk()}
    assert "loop.for" in operations
    assert not [name for name in operations if name.startswith("vector.")]
    assert "pthread" not in generate_c(compilation).source


def test_its_machines_are_its_own() -> None:
    with pytest.raises(MscError, match=r"MSC0501.*the target scalar has no machine 'x86-64-v3'"):
        CompileOptions(target="scalar", march="x86-64-v3")


def test_its_optimisations_are_those_of_the_common_stages() -> None:
    with pytest.raises(MscError, match=r"MSC0008.*there is no optimisation 'winograd'"):
        CompileOptions(target="scalar", without=("winograd",))


def test_a_stage_file_of_another_back_end_is_refused(tmp_path: Path) -> None:
    from msc.driver.compile import stage_text

    compilation = compile_model(str(ROOT / "samples" / "mlp" / "mlp.mir"), CompileOptions(target="scalar"), "gk")
    path = tmp_path / "mlp.gk.mir"
    path.write_text(stage_text(compilation), "utf-8")
    with pytest.raises(MscError, match=r"MSC0506.*made for the target 'scalar', not for 'cpu'"):
        compile_model(str(path), CompileOptions())


def test_its_passes_find_what_they_require() -> None:
    from msc.driver.passes.instances import pass_instances
    from msc.driver.passes.registry import find_property

    held = [*map(find_property, ("Inlined", "ShapesKnown", "Unclustered", "Unscheduled", "Tensors"))]
    for stage in find_backend("scalar").table.ir[2:]:
        wanted = [*map(find_property, stage.properties)]
        assert not order_problems(pass_instances(stage.passes, {}), held, wanted)
        held += wanted
