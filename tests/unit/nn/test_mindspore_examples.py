"""Programs for MindSpore run after changing only what they import, and print what MindSpore 2.10.0 printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).with_name("mindspore_examples")
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[+-]?\d+)?(?![\w.])")
OBJECT = re.compile(r"weight_init=(<[^>]*>|\w+\([^)]*\))")

TRAINED = ("e10_paradigms",)
"""Whose numbers come after dozens of updates, each of which rounds."""


def expected(name: str) -> str:
    text = (EXAMPLES / "expected.txt").read_text("utf-8")
    return text.partition(f"===== {name}.py\n")[2].partition("\n===== ")[0]


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    text = OBJECT.sub("weight_init=", text)
    words = NUMBER.sub("#", text).translate(str.maketrans("[]", "  ")).split()
    return words, [float(number) for number in NUMBER.findall(text)]


def imports_msc(line: str) -> str:
    """An import line of MindSpore's, of msc instead."""
    return re.sub(r"\bmindspore(?=\.| as | import )", "msc", re.sub(r"\bmindspore(?=,|$)", "msc as mindspore", line))


def run(name: str, folder: Path, **changes: str) -> str:
    for path in EXAMPLES.glob("*.txt"):
        lines = path.read_text("utf-8").splitlines()
        changed = "\n".join(imports_msc(x) if x.startswith(("import ", "from ")) else x for x in lines) + "\n"
        for old, new in changes.items():
            changed = changed.replace(old, new)
        (folder / path.with_suffix(".py").name).write_text(changed, "utf-8")
    done = subprocess.run([sys.executable, f"{name}.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "e01_dense",
        "e02_conv",
        "e03_pool_act",
        "e04_lenet5",
        "e05_densenet",
        "e10_paradigms",
        "e13_transforms",
        "e16_tensor_ops",
        "e20_data",
        "e21_summary",
    ],
)
def test_example(name: str, tmp_path: Path) -> None:
    words, numbers = words_and_numbers(run(name, tmp_path))
    expected_words, expected_numbers = words_and_numbers(expected(name))
    assert words == expected_words
    rounding = 5e-5 if name in TRAINED else 2e-5
    assert numbers == pytest.approx(expected_numbers, rel=rounding, abs=2e-6)


def test_custom_operators(tmp_path: Path) -> None:
    assert shutil.which("g++"), "this example compiles C++: install g++"
    assert run("e18_primitive_custom", tmp_path) == expected("e18_primitive_custom") + "\n"


def test_fine_tuning(tmp_path: Path) -> None:
    """The size of the file is another one: it is safetensors."""
    size = re.compile(r"\d+$", re.MULTILINE)
    assert size.sub("#", run("e08_finetune", tmp_path).strip()) == size.sub("#", expected("e08_finetune"))


def test_training_in_both_modes(tmp_path: Path) -> None:
    """A smaller network and fewer rows than in the recording; what is called and written is the same."""
    lines = run("e06_model", tmp_path, e04_lenet5="tiny").splitlines()
    recorded = expected("e06_model").splitlines()
    eager, compiled = lines[:4], lines[4:]
    assert [line.partition("files")[2] for line in eager] == [line.partition("files")[2] for line in recorded[:4]]
    assert eager[2] == compiled[2] == recorded[2]
    for one, other in zip(eager, compiled, strict=True):
        assert words_and_numbers(one)[0] == words_and_numbers(other)[0]
        assert words_and_numbers(one)[1] == pytest.approx(words_and_numbers(other)[1], rel=1e-3, abs=2e-5)
    assert eager[3] == recorded[3]
