"""A stage file that someone has edited is verified wherever it comes in."""

from collections.abc import Callable
from pathlib import Path

import pytest

import msc
from msc.driver.compile import compile_model, stage_text
from msc.driver.differential import Settings, verify_model
from msc.driver.options import CompileOptions
from msc.driver.stages import STAGES
from msc.support.diagnostics import MscError

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


def test_every_verifier_of_the_table_changes_nothing() -> None:
    names = [name for stage in STAGES for name in stage.verifiers]
    assert names
    assert all(name.startswith("verify-") for name in names)
