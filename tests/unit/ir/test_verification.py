import pytest
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ModuleOp, f32

from msc.driver.passes.registry import new_context
from msc.ir.reading import parse_module
from msc.ir.verification import dominance_violations, module_diagnostics, verify_module
from msc.support.diagnostics import Diagnostic, MscError


def check(text: str) -> tuple[Diagnostic, ...]:
    return module_diagnostics(parse_module(new_context(), text, "a.mir"), {"a.mir": text})


def test_a_valid_module_passes() -> None:
    text = "func.func @f(%x : f32) -> f32 {\n  func.return %x : f32\n}"
    verify_module(parse_module(new_context(), text, "a.mir"))


def test_all_errors_are_collected_with_their_lines() -> None:
    text = 'func.func @f(%x : f32) {\n  %0 = "arith.addf"(%x) : (f32) -> f32\n'
    text += '  %1 = "arith.negf"(%x, %x) : (f32, f32) -> f32\n  func.return\n}'
    found = check(text)
    assert [(d.code, d.location.line if d.location else 0) for d in found] == [("MSC0200", 2), ("MSC0200", 3)]
    assert found[0].source_line == '  %0 = "arith.addf"(%x) : (f32) -> f32'
    assert "func.func" not in found[0].message


def test_a_use_before_the_definition_is_one_error_per_operation() -> None:
    text = "func.func @f(%x : f32) {\n  %0 = arith.addf %1, %1 : f32\n  %1 = arith.addf %x, %x : f32\n  func.return\n}"
    found = check(text)
    assert [d.code for d in found] == ["MSC0204"]
    assert "'%1'" in found[0].message or "arith.addf" in found[0].message


def test_a_value_does_not_leave_its_region() -> None:
    first, second = arith.ConstantOp.from_int_and_width(1, 32), None
    inner = func.FuncOp("f", ((), ()))
    inner.body.block.add_ops([first, func.ReturnOp()])
    second = arith.AddiOp(first, first)
    outer = func.FuncOp("g", ((), ()))
    outer.body.block.add_ops([second, func.ReturnOp()])
    assert [op for op, _ in dominance_violations(ModuleOp([inner, outer]))] == [second, second]


def test_dominance_across_blocks() -> None:
    text = "func.func @f(%c : i1, %x : f32) {\n  cf.cond_br %c, ^a, ^b\n^a:\n  %0 = arith.negf %x : f32\n  cf.br ^b\n"
    text += "^b:\n  %1 = arith.negf %0 : f32\n  func.return\n}"
    assert [d.code for d in check(text)] == ["MSC0204"]
    assert not check(text.replace("^a, ^b\n", "^a, ^a\n"))


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f() {\n  %0 = arith.constant 1 : i32\n}",
        "func.func @f() {\n  cf.br ^a\n  func.return\n^a:\n  func.return\n}",
        '"func.func"() <{sym_name = "f", function_type = () -> ()}> ({\n^a:\n}) : () -> ()',
    ],
)
def test_structure(text: str) -> None:
    assert "MSC0205" in {d.code for d in check(text)}


def test_absurd_sizes_are_refused() -> None:
    text = f"func.func @f(%x : tensor<{'9' * 30}xf32>) {{\n  func.return\n}}"
    assert [d.code for d in check(text)] == ["MSC0206"]


def test_a_module_without_places_still_has_messages() -> None:
    broken = arith.AddfOp.create(result_types=[f32])
    with pytest.raises(MscError) as error:
        verify_module(ModuleOp([broken]))
    assert error.value.diagnostics[0].location is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("func.call @g(%x) : (f32) -> ()", None),
        ("func.call @h(%x) : (f32) -> ()", "could not be found in symbol table"),
        ("func.call @g(%x, %x) : (f32, f32) -> ()", "incorrect number of operands"),
        ("%y = func.call @g(%x) : (f32) -> f32", "incorrect number of results"),
        ("func.call @g(%i) : (index) -> ()", "operand type mismatch"),
        ('"func.call"(%x) : (f32) -> ()', "property 'callee' expected"),
    ],
)
def test_a_call_is_of_a_function_of_its_types(call: str, message: str | None) -> None:
    text = "func.func @f(%x : f32, %i : index) {\n  CALL\n  func.return\n}\nfunc.func @g(%x : f32) {\n  func.return\n}"
    found = check(text.replace("CALL", call))
    assert len(found) == (message is not None)
    assert message is None or message in found[0].message
