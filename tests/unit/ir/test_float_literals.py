"""Dense float literals survive printing and parsing: infinities, NaN, and what is printed as its bits."""

from __future__ import annotations

import math

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, DenseIntOrFPElementsAttr

from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError


def literal(text: str) -> DenseIntOrFPElementsAttr:
    """The attribute that the text of a dense literal reads as."""
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    module = parse_module(context, f'"test.op"() {{value = {text}}} : () -> ()', "test.mir")
    return next(op.attributes["value"] for op in module.walk() if op.attributes)  # pyright: ignore


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_special_values(element: str) -> None:
    values = (math.inf, -math.inf, 1.0, 16777216.0 if element in ("f32", "f64") else 2.0, -0.0)
    bits = {"f16": "0x7C00", "bf16": "0x7F80", "f32": "0x7F800000", "f64": "0x7FF0000000000000"}[element]
    wide = "1.6777216e+07" if element in ("f32", "f64") else "2.0"
    negative = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}[element]
    read = literal(f"dense<[{bits}, {negative}, 1.0, {wide}, -0.0]> : tensor<5x{element}>")
    assert tuple(map(str, read.get_values())) == tuple(map(str, values))
    assert literal(str(read)) == read


def test_nan() -> None:
    read = literal("dense<0x7FC00000> : tensor<f32>")
    assert math.isnan(float(str(read.get_values()[0])))
    assert math.isnan(float(str(literal(str(read)).get_values()[0])))


def test_hexadecimal_integers_are_numbers() -> None:
    assert literal("dense<[0x10, 3]> : tensor<2xi32>").get_values() == (16, 3)


def test_too_many_bits() -> None:
    with pytest.raises(MscError, match="0x17F800000 has more bits than f32"):
        literal("dense<0x17F800000> : tensor<f32>")


@pytest.mark.parametrize("text", ["1e-45", "5E+3", "-2e0", "1.5e1"])
def test_an_exponent_needs_no_point(text: str) -> None:
    assert literal(f"dense<{text}> : tensor<f64>").get_values() == (float(text),)
