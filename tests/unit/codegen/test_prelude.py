"""The functions that generated C brings along: those that it calls and no others, of which compilers would complain."""

from __future__ import annotations

import re

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
