"""A stage file that someone has edited is verified wherever it comes in."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import msc
from msc.backends.registry import find_backend
from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions
from msc.driver.verification.differential import ALL_NAN, Settings, verify_model
from msc.support.diagnostics import MscError

TABLE = find_backend("cpu").table

OPTIONS = CompileOptions(march="generic")
DOORS: list[Callable[[Path, Path], object]] = [
    lambda edited, model: compile_model(str(edited), OPTIONS),
    lambda edited, model: msc.compile(str(edited)),
    lambda edited, model: verify_model(str(edited), OPTIONS, Settings(), str(model)),
]


def edited(model: Path, old: str, new: str) -> Path:
    """The loops of a model with one thing changed."""
    text = stage_text(compile_model(str(model), OPTIONS))
    assert old in text
    path = model.parent / "small.loop.mir"
    path.write_text(text.replace(old, new), "utf-8")
    return path


@pytest.mark.parametrize("door", DOORS, ids=["compile", "python", "verify"])
def test_a_loop_that_leaves_its_buffer_is_refused(model: Path, door: Callable[[Path, Path], object]) -> None:
    with pytest.raises(MscError, match=r"MSC0404.*verify-bounds: .* leaves its buffer of 2x6 elements"):
        door(edited(model, "= 0 to 6 ", "= 0 to 30000000 "), model)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gk.yield %", "gk.yield %x, %", "MSC0"),
        ("gk.pattern", 'gk.schedule = #gk.schedule<["run S0 S9"]>, gk.pattern', "MSC0408.*there is no S9"),
    ],
)
def test_mistakes_are_shown_where_they_were_made(model: Path, old: str, new: str, message: str) -> None:
    text = stage_text(compile_model(str(model), OPTIONS, "gk"))
    path = model.parent / "small.gk.mir"
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(MscError, match=message) as error:
        compile_model(str(path), OPTIONS)
    first = error.value.diagnostics[0]
    assert first.place is not None
    assert first.source_line is not None
    assert first.place.file == str(path)
    assert path.read_text("utf-8").split("\n")[first.place.line - 1] == first.source_line
    assert "this was made of" in str(error.value) or "gk.yield" in old


def test_the_kernel_that_someone_broke_is_named(model: Path) -> None:
    broken = edited(model, "arith.mulf", "arith.addf")
    *_, last = verify_model(str(broken), OPTIONS, Settings(), str(model))
    assert last.diverges
    assert last.subject.startswith("kernel k")
    assert last.step == "read"


def test_agreement_on_nothing_but_nan_is_said(model: Path) -> None:
    weights = {name: np.full(shape, np.nan, np.float32) for name, shape in (("w", (4, 6)), ("b", (4,)))}
    (model.parent / "small.safetensors").write_bytes(save(weights))
    checks = verify_model(str(model), OPTIONS, Settings())
    assert not checks[-1].diverges
    assert any(check.detail == ALL_NAN for check in checks)


def test_a_result_may_be_called_as_an_argument_at_every_stage(tmp_path: Path) -> None:
    model = tmp_path / "same.mir"
    model.write_text(
        'func.func @main(%x: tensor<4xf32> {ms.name = "x"}) -> (tensor<4xf32> {ms.name = "x"}) {\n'
        "  %0 = ms.relu %x\n  func.return %0 : tensor<4xf32>\n}\n",
        "utf-8",
    )
    path = tmp_path / "same.loop.mir"
    path.write_text(stage_text(compile_model(str(model), OPTIONS)), "utf-8")
    assert msc.compile(str(path))(np.array([-1, 0, 1, 2], np.float32)).tolist() == [0, 0, 1, 2]


OPEN = """func.func @main(%x: tensor<?x6xf32> {ms.dims = ["b", ""]}) -> tensor<?x6xf32> {
  %0 = ms.relu %x
  func.return %0 : tensor<?x6xf32>
}
"""


def test_rows_that_a_call_does_not_have_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "open.mir").write_text(OPEN, "utf-8")
    text = stage_text(compile_model(str(tmp_path / "open.mir"), CompileOptions(march="generic", dims={"b": (1, 16)})))
    path = tmp_path / "open.loop.mir"
    path.write_text(text, "utf-8")
    compile_model(str(path), OPTIONS)
    loops = [line for line in text.split("\n") if "loop.for" in line and "to %b " in line]
    path.write_text(text.replace(loops[0], loops[0].replace("to %b ", "to 16 ")), "utf-8")
    with pytest.raises(MscError, match=r"MSC0404.*leaves the elements that its buffer has in the call"):
        compile_model(str(path), OPTIONS)


def test_every_verifier_of_the_table_changes_nothing() -> None:
    names = [run.name for stage in TABLE.stages for run in stage.verifiers]
    assert names
    assert all(name.startswith("verify-") for name in names)
