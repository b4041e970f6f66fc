"""What holds for all registered passes: a text, and no negative numbers."""

from dataclasses import fields
from typing import get_type_hints

import pytest

from msc.driver.passes import registry
from msc.driver.passes.pipeline import build_pipeline, pass_summary
from msc.support.diagnostics import MscError

NUMBERS = (int, int | None, tuple[int, ...])


def options_of_numbers() -> list[tuple[str, str]]:
    """Every pass with each of its options that are whole numbers."""
    passes = {name: registry.load_pass(name) for name in registry.all_passes()}
    hints = {name: get_type_hints(found) for name, found in passes.items()}
    return [(name, f.name) for name, found in passes.items() for f in fields(found) if hints[name][f.name] in NUMBERS]


def test_no_option_takes_a_negative_number() -> None:
    options = options_of_numbers()
    assert ("cluster-kernels", "max_operations") in options
    assert ("grad", "inputs") in options
    for name, option in options:
        with pytest.raises(MscError, match=r"MSC0402.*of at least [01], not '-1'"):
            build_pipeline(f"{name}{{{option}=-1}}")


def test_every_pass_has_a_purpose() -> None:
    for name in registry.all_passes():
        assert not pass_summary(name).startswith(f"{name}:  "), name
