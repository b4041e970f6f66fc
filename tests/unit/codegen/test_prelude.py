"""The functions that generated C brings along: those that it calls and no others, of which compilers would complain."""

from __future__ import annotations

import platform
import re
import subprocess

import pytest

from msc.codegen.c.prelude import Prelude
from msc.codegen.c.prelude_text import TEMPLATES
from msc.codegen.c.types import CType


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name.startswith("reduce_")])
def test_a_reduction_brings_what_it_calls(name: str, lanes: int) -> None:
    prelude = Prelude()
    whole = prelude.function(name, CType("i32" if name[7:] in ("and", "or", "xor") else "f32", lanes))
    text = prelude.text()
    defined = set(re.findall(r"^static inline \w+ (\w+)\(", text, re.MULTILINE))
    called = [word for word in re.findall(r"\w+(?=\()", text) if word in defined]
    assert whole in defined
    assert [function for function in defined - {whole} if called.count(function) < 2] == []


def test_types_that_lie_alike_in_memory_share_a_function() -> None:
    prelude = Prelude()
    for base in ("f16", "u16", "bf16"):
        assert prelude.function("splat", CType(base, 2)) == "splat_u16x2"
    assert prelude.text().count("u16x2 splat_u16x2(") == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="assembler text of x86")
@pytest.mark.parametrize(("base", "lanes"), [("f32", 16), ("f64", 8)])
@pytest.mark.parametrize("name", ["max", "min"])
def test_an_extremum_of_avx512_loads_its_operand_once(name: str, base: str, lanes: int) -> None:
    prelude = Prelude()
    function = prelude.function(name, CType(base, lanes))
    vector = CType(base, lanes).name
    text = f"{prelude.text()}\n{vector} f({vector} a, const {vector} *b) {{ return {function}(a, *b); }}"
    command = ["gcc", "-O3", "-march=x86-64-v4", "-x", "c", "-S", "-o", "-", "-"]
    assembler = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout
    assert assembler.count("(%rdi)") == 1
    assert re.search(rf"v{name}p[sd].*{{%k", assembler)
