"""No package but its own and the registries imports a concrete back end, its lowering, code generator or target."""

import re
from pathlib import Path

import pytest

import msc

PACKAGE = Path(msc.__file__).parent
STRATEGY = tuple(
    f"schedule/{room}" for room in ("cube", "vector_unit", "copies", "scalar_loops.py", "scheduled_model.py")
)
"""How kernels are scheduled for the units of Ascend, and where schedules of both back ends meet."""
OWN = {
    "cpu": (r"backends\.cpu|codegen\.c|lowering\.cpu", ("backends", "codegen", "lowering/cpu")),
    "ascend": (
        r"backends\.ascend|(codegen|dialects|targets)\.davinci|dialects import davinci|lowering\.ascend|sim",
        ("backends", "codegen/davinci", "lowering/ascend", "dialects/davinci", "sim", "targets", *STRATEGY),
    ),
}
"""What is concrete, and the packages and files that are its own."""


@pytest.mark.parametrize("target", OWN)
def test_no_concrete_back_end_is_imported(target: str) -> None:
    pattern, own = OWN[target]
    concrete = re.compile(rf"\s*(from|import)\s.*\bmsc\.({pattern})\b")
    found = list[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        if not any(place.is_relative_to(room) for room in own):
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            found += [f"{place}:{number}: {line.strip()}" for number, line in lines if concrete.match(line)]
    assert not found
