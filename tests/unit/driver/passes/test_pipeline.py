from dataclasses import dataclass, field
from typing import Literal

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from msc.backends import registry as backends
from msc.driver.passes import registry
from msc.driver.passes.pipeline import build_pipeline, pass_summary
from msc.support.diagnostics import Diagnostic, MscError


@dataclass(frozen=True)
class Sample(ModulePass):
    """Does nothing."""

    name = "sample"
    size: int = 8
    tiles: tuple[int, ...] = (1,)
    mode: Literal["safe", "fast"] = "safe"
    only: str | None = None
    on_fire: bool = False
    rows: int | None = None
    workers: int = field(default=4, metadata={"least": 1})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        return


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(target: str) -> object:
        return Sample

    monkeypatch.setitem(registry.PASSES, "sample", "sample")
    monkeypatch.setattr(backends, "load_object", load)


def refused(text: str) -> Diagnostic:
    with pytest.raises(MscError) as error:
        build_pipeline(text)
    return error.value.diagnostics[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (" sample ", (Sample(),)),
        ("sample,sample{size=3}", (Sample(), Sample(3))),
        ('sample{tiles=8,8,4 mode=fast only="a b"}', (Sample(8, (8, 8, 4), "fast", "a b"),)),
        ("sample { tiles = 8, 4, mode = fast, } , sample", (Sample(8, (8, 4), "fast"), Sample())),
        ("sample{on-fire}", (Sample(on_fire=True),)),
        ("sample{on_fire=true only=x86-64-v3}", (Sample(on_fire=True, only="x86-64-v3"),)),
    ],
)
def test_pipelines(text: str, expected: tuple[ModulePass, ...]) -> None:
    assert build_pipeline(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("sample,", "MSC0400", 8),
        (",sample", "MSC0400", 1),
        ("sample{", "MSC0400", 8),
        ("sample{size=}", "MSC0400", 13),
        ("sample sample", "MSC0400", 8),
        ("sample;x", "MSC0400", 7),
        ('sample{only="a}', "MSC0400", 13),
        ("sampel", "MSC0401", 1),
        ("sample{sise=3}", "MSC0402", 8),
        ("sample{size=fast}", "MSC0402", 8),
        ("sample{mode=slow}", "MSC0402", 8),
        ("sample{on-fire size=-1}", "MSC0402", 16),
    ],
)
def test_mistakes_have_a_code_and_a_caret(text: str, code: str, column: int) -> None:
    found = refused(text)
    assert found.code == code
    assert found.location is not None
    assert found.location.column == column


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("size=-1", "takes a whole number of at least 0, not '-1'"),
        ("rows=-2", "takes a whole number of at least 0, not '-2'"),
        ("tiles=4,-4", "takes whole numbers of at least 0, not '4,-4'"),
        ("workers=0", "takes a whole number of at least 1, not '0'"),
        ("workers=few", "takes a whole number of at least 1, not 'few'"),
    ],
)
def test_numbers_have_a_least(text: str, taken: str) -> None:
    assert taken in refused(f"sample{{{text}}}").message
    assert build_pipeline("sample{size=0 rows=0 tiles=0 workers=1}") == (Sample(0, (0,), rows=0, workers=1),)


def test_advice() -> None:
    assert refused("sampel").help == "did you mean 'sample'?"
    assert refused("sample{sise=3}").help == "did you mean 'size'?"
    assert "tiles: tuple[int, ...]" in refused("sample{size=x}").notes[0]
    assert pass_summary("sample").startswith("sample: Does nothing.")
