"""Back ends of other packages that cannot be loaded: an error says what is wrong with each, and the others go on."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msc.backends.registry import BACKENDS, find_backend, found_backends
from msc.driver.compile import compile_model, stage_text
from msc.driver.options import CompileOptions
from msc.support.diagnostics import MscError

ROOT = Path(__file__).parents[3]
MODULES = {
    "raises": "raise ValueError('no such device')",
    "no_python": "def (:",
    "halves": """
from msc.backends.backend import CBackend


class Half(CBackend):
    name = "half"
    summary = "a half"
    default_machine = "generic"

    def machines(self):
        return ("generic",)


class Nameless(CBackend):
    pass
""",
}
POINTS = {"raises": "raises:Any", "no_python": "no_python:Any", "half": "halves:Half", "nameless": "halves:Nameless"}


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The packages on the path, with the metadata that an installer would make."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    info = tmp_path / "broken-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n", "utf-8")
    lines = ["[msc.backends]", *(f"{name} = {value}" for name, value in POINTS.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    importlib.invalidate_caches()
    forget()
    yield
    forget()
    for name in MODULES:
        sys.modules.pop(name, None)


def forget() -> None:
    BACKENDS.forget()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raises", "cannot be loaded: no such device"),
        ("no_python", "cannot be loaded: invalid syntax"),
        ("half", "does not define describe, generate, stages"),
        ("nameless", "is not a subclass of Backend of that name"),
    ],
)
def test_a_package_that_is_broken_is_told_of(name: str, problem: str) -> None:
    with pytest.raises(MscError, match=f"MSC0506.*{problem}"):
        find_backend(name)


def test_the_other_back_ends_go_on() -> None:
    names = [backend.name for backend in found_backends()]
    assert "cpu" in names
    assert not set(POINTS) & set(names)


def test_a_stage_file_of_another_back_end_names_it(tmp_path: Path) -> None:
    """Its extension says nothing to the back end that reads it, which must not judge its operations."""
    options = CompileOptions(target="ascend910b1")
    path = tmp_path / "mlp.dv.mir"
    path.write_text(stage_text(compile_model(str(ROOT / "samples" / "mlp" / "mlp.mir"), options)), "utf-8")
    with pytest.raises(MscError, match=r"MSC0506.*made for the target 'ascend910b1', not for 'cpu'"):
        compile_model(str(path), CompileOptions())
