import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import BytesAttr, ModuleOp

from msc.driver.passes.registry import new_context
from msc.ir.locations import format_module, source_location
from msc.ir.reading import parse_module
from msc.support.diagnostics import Diagnostic, MscError

VALID = """func.func @f(%x : f32, %m : memref<4xf32>) -> f32 {
  %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = arith.addf %x, %x {note = "a\\"b"} : f32
  %i = arith.constant 0 : index
  scf.for %j = %i to %i step %i {
    memref.store %0, %m[%j] : memref<4xf32>
  }
  func.return %0 : f32
}
"""


def parse(text: str) -> ModuleOp:
    return parse_module(new_context(), text, "a.mir")


def diagnostics(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(MscError) as error:
        parse(text)
    return error.value.diagnostics


def test_operations_have_the_place_of_their_name() -> None:
    places = {op.name: str(source_location(op)) for op in parse(VALID).walk() if source_location(op)}
    assert places["arith.addf"] == "a.mir:3:8"
    assert places["memref.store"] == "a.mir:6:5"


def test_explicit_locations_are_kept() -> None:
    module = parse('func.func @f() {\n  func.return loc("other.py":7:3)\n}')
    assert "other.py:7:3" in {str(source_location(op)) for op in module.walk()}


def test_text_in_any_letters_is_read_back_as_it_was_printed() -> None:
    text = 'func.func @f(%x: f32 {ms.name = "größe 大"}) -> f32 {\n  func.return %x : f32 loc("模型.py":7:3)\n}'
    printed = format_module(parse(text), debuginfo=True)
    assert printed.isascii()
    assert format_module(parse(printed), debuginfo=True) == printed
    assert "模型.py:7:3" in {str(source_location(op)) for op in parse(printed).walk()}


def test_bytes_that_are_no_text_stay_bytes() -> None:
    module = parse('func.func @f() attributes {a = "\\FF\\FE"} {\n  func.return\n}')
    (function,) = module.ops
    assert function.attributes["a"] == BytesAttr(b"\xff\xfe")


def test_all_undefined_values_are_reported() -> None:
    found = diagnostics("func.func @f(%image : f32) {\n  %0 = arith.addf %imagf, %zz : f32\n  func.return\n}")
    assert [d.code for d in found] == ["MSC0104", "MSC0104"]
    assert found[0].help == "did you mean '%image'?"
    assert found[1].location is not None
    assert (found[1].location.line, found[1].location.column) == (2, 27)


def test_a_value_of_another_function_is_undefined() -> None:
    text = "func.func @f() {\n  %0 = arith.addf %y, %y : f32\n  func.return\n}\n"
    text += "func.func @g(%y : f32) {\n  func.return\n}"
    assert diagnostics(text)[0].code == "MSC0104"


def test_a_duplicate_block_names_the_first() -> None:
    found = diagnostics("func.func @f() {\n  func.return\n^a:\n  cf.br ^a\n^a:\n  func.return\n}")[0]
    assert found.code == "MSC0105"
    assert "a.mir:3:1" in found.notes[0]


def test_a_duplicate_block_that_was_used_before() -> None:
    found = diagnostics("func.func @f() {\n  cf.br ^a\n^a:\n  cf.br ^a\n^a:\n  func.return\n}")[0]
    assert found.code == "MSC0105"


def test_conflicting_types_while_parsing_have_a_place() -> None:
    found = diagnostics(
        "func.func @f(%x : tensor<2x3xf32>) {\n  %0 = ms.add %x, %x : (f32, f32) -> f32\n  func.return\n}"
    )
    assert found[0].location is not None


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("MSC0101", '"' + "a" * 5000),
        ("MSC0101", '#a = "abc\n'),
        ("MSC0106", "(" * 100_000),
        ("MSC0106", "!a = " + "tuple<" * 3000),
        ("MSC0106", '"a.b"() ({' * 500),
        ("MSC0107", "%a:" + "9" * 20_000 + " = x"),
        ("MSC0107", "!a = i" + "9" * 20_000),
        ("MSC0107", "1." + "3" * 5000),
        ("MSC0108", "#a = dense<1> : tensor<100000000000xi32>"),
        ("MSC0108", "#a = dense<[" + "1, " * 70_000 + "1]> : tensor<70001xi32>"),
        ("MSC0112", "#a = dense<[1, 2, 3]> : tensor<2xi32>"),
        ("MSC0112", '#a = dense<"0xQQ"> : tensor<2xi32>'),
        ("MSC0103", "#a = #b"),
        ("MSC0103", "#a = #foo<bar>"),
        ("MSC0190", "#a = affine_map<(d0) -> (" + "- " * 5000 + "d0)>"),
        ("MSC0100", '{-# dialect_resources: {builtin: {w: "0x00"}} #-}'),
        ("MSC0100", ""),
        ("MSC0102", "é"),
        ("MSC0100", "\x00"),
    ],
)
def test_hostile_text_is_refused_quickly(code: str, text: str) -> None:
    start = time.process_time()
    assert diagnostics(text)[0].code == code
    assert time.process_time() - start < 5


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(VALID)), st.integers(0, 12), st.text(alphabet='%()[]{}<>="-x1.@#!^:, \n²', max_size=4))
def test_mutated_text_never_escapes_as_another_exception(position: int, removed: int, inserted: str) -> None:
    text = VALID[:position] + inserted + VALID[position + removed :]
    with contextlib.suppress(MscError):
        parse(text)


def test_an_empty_file_is_called_so() -> None:
    with pytest.raises(MscError, match=r"MSC0100.*the file is empty"):
        parse("")
