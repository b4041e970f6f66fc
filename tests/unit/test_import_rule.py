"""The packages of msc import only from strictly lower levels, and from themselves."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import msc

PACKAGE = Path(msc.__file__).parent
LEVELS: dict[str, int] = {
    "support": 0,
    "ir": 1,
    "poly": 2,
    "targets": 1,
    "dialects": 3,
    "analysis": 4,
    "cost": 4,
    "interp": 4,
    "runtime": 4,
    "sim": 4,
    "weights": 5,
    "graph": 5,
    "planner": 7,
    "frontend": 6,
    "exporters": 6,
    "importers": 6,
    "graph_kernel": 6,
    "parallel": 6,
    "schedule": 5,
    "lowering": 6,
    "codegen": 6,
    "backends": 7,
    "ops": 7,
    "nn": 8,
    "common": 8,
    "dataset": 8,
    "numpy": 8,
    "scipy": 8,
    "experimental": 9,
    "mint": 10,
    "amp": 9,
    "train": 10,
    "driver": 12,
    "formats": 9,
    "model_zoo": 9,
    "quantization": 9,
    "mindspore": 11,
}
"""The thin public modules beside them (`msc.context`, ...) may import anything, and nothing imports them."""


def imported_packages(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module="msc", names=names):
                modules = [f"msc.{alias.name}" for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                continue
        for module in modules:
            parts = module.split(".")
            if parts[0] == "msc" and len(parts) > 1:
                yield parts[1], node.lineno


def test_every_package_has_a_level() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == LEVELS.keys()


def test_packages_import_only_from_lower_levels() -> None:
    wrong: list[str] = []
    for name, level in LEVELS.items():
        for path in sorted((PACKAGE / name).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for imported, line in imported_packages(tree):
                lower = LEVELS.get(imported, -1 if imported.startswith("__") else 99) < level
                if imported != name and not lower:
                    wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports msc.{imported}")
    assert not wrong, "\n".join(wrong)


def test_imports_are_absolute() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


def modules(folder: Path) -> dict[str, ast.AST]:
    """The modules in a folder by dotted name."""
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in folder.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8")) for path, name in names.items()}


def imports(found: dict[str, ast.AST]) -> dict[str, set[str]]:
    """For each module: those it imports, at the top of its text, in a function or for types alone."""
    arrows: dict[str, set[str]] = {}
    for name, tree in found.items():
        named = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None]
        both = [(str(node.module), f"{node.module}.{alias.name}") for node in named for alias in node.names]
        arrows[name] = {inner if inner in found else outer for outer, inner in both} & found.keys() - {name}
    return arrows


def sub_package_imports(package: str) -> dict[str, set[str]]:
    """For each sub-package, and each module beside them: those it imports from."""

    def room(module: str) -> str:
        return module.removeprefix(f"msc.{package}.").split(".")[0]

    arrows: dict[str, set[str]] = {}
    for name, imported in imports(modules(PACKAGE / package.replace(".", "/"))).items():
        rooms = {room(module) for module in imported if module != f"msc.{package}"}
        arrows[room(name)] = arrows.get(room(name), set()) | rooms - {room(name)}
    return arrows


SUB_PACKAGES = ["driver", "graph", "graph_kernel", "schedule", "lowering.cpu", "importers.onnx", "codegen.c"]


@pytest.mark.parametrize("package", SUB_PACKAGES)
def test_sub_packages_have_no_circle(package: str) -> None:
    TopologicalSorter(sub_package_imports(package)).prepare()


CIRCLES = ("msc.frontend.", "msc.dataset.", "msc.nn.", "msc.graph.autodiff.")
"""Where files may import each other: a data set, tensor or cell has methods that make others, and what reads Python
statements, or differentiates operations, calls itself for those inside."""


def test_files_import_each_other_nowhere_else() -> None:
    inside = {name: tree for name, tree in modules(PACKAGE).items() if name.partition(".")[2].split(".")[0] in LEVELS}
    TopologicalSorter(imports({name: tree for name, tree in inside.items() if not name.startswith(CIRCLES)})).prepare()
