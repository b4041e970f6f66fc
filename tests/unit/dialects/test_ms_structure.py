"""Constants, parameters and the syntax of optional operands."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition, operand_def, opt_operand_def, result_def
from xdsl.printer import Printer

from msc.dialects.ms import MS, ParameterOp
from msc.dialects.ms.base import MsOp
from msc.dialects.ms.properties import ints_property, real_property
from msc.ir.reading import parse_module
from msc.ir.verification import verify_module
from msc.support.diagnostics import MscError


@irdl_op_definition
class OptionalOperandsOp(MsOp):
    """Two optional operands, so that their number does not say which are present."""

    name = "test.optional"
    x = operand_def(TensorType)
    first = opt_operand_def(TensorType)
    second = opt_operand_def(TensorType)
    strides = ints_property(1, 1)
    alpha = real_property(0.0)
    result = result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def infer(self) -> Sequence[TensorType[Attribute]]:
        return (self.tensor(0),)


def parsed(text: str) -> ModuleOp:
    ctx = Context()
    for dialect in (Builtin, Func, MS, Dialect("test", [OptionalOperandsOp])):
        ctx.load_dialect(dialect)
    module = parse_module(ctx, text, "test.mir")
    verify_module(module)
    return module


def generic(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def body(line: str) -> str:
    return f"func.func @main(%a : tensor<2xf32>, %b : tensor<3xf32>) {{\n  %r = {line}\n  func.return\n}}"


def round_trip(text: str) -> str:
    module = parsed(text)
    assert str(parsed(str(module))) == str(module)
    assert str(parsed(generic(module))) == str(module)
    return str(module)


@pytest.mark.parametrize(
    ("written", "present"),
    [
        ("test.optional %a", [False, False]),
        ("test.optional %a, %b", [True, False]),
        ("test.optional %a, %b, %b", [True, True]),
        ("test.optional %a, %b {operandSegmentSizes = array<i32: 1, 0, 1>}", [False, True]),
    ],
)
def test_optional_operands(written: str, present: list[bool]) -> None:
    module = parsed(round_trip(body(written)))
    op = next(op for op in module.walk() if isinstance(op, OptionalOperandsOp))
    assert [op.first is not None, op.second is not None] == present


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("{alpha = 1}", "{alpha = 1.0}"),
        ("{alpha = 1e-05}", "{alpha = 1.0e-05}"),
        ("{alpha = -2E3}", "{alpha = -2000.0}"),
        ("{alpha = 1e+2}", "{alpha = 100.0}"),
        ('{alpha = "-inf"}', '{alpha = "-inf"}'),
        ('{alpha = "nan"}', '{alpha = "nan"}'),
        ("{alpha = 0.0, strides = [1, 1]}", " : "),
        ("{strides = 2}", "{strides = [2, 2]}"),
        ("{strides = [-1]}", "{strides = [-1]}"),
        ("{strides = []}", "{strides = []}"),
        ('{ms.note = "kept"}', '{ms.note = "kept"}'),
    ],
)
def test_property_values(written: str, printed: str) -> None:
    assert f"test.optional %a {printed}".replace("  ", " ") in round_trip(body(f"test.optional %a {written}"))


PARAMETERS = """
builtin.module @model attributes {ms.weights = "model.safetensors"} {
  ms.parameter @w : tensor<2x3xf32>
  ms.parameter @t : tensor<3x2xf32> = {
    %w = ms.get_parameter @w : tensor<2x3xf32>
    %t = ms.transpose %w
    ms.yield %t : tensor<3x2xf32>
  }
  func.func @main() -> tensor<3x2xf32> {
    %t = ms.get_parameter @t : tensor<3x2xf32>
    %c = ms.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %r = ms.exp %t
    %u = ms.get_parameter @w : tensor<2x3xf32>
    func.return %r : tensor<3x2xf32>
  }
}
"""


def test_parameters_and_constants() -> None:
    text = round_trip(PARAMETERS)
    assert "ms.parameter @w : tensor<2x3xf32>" in text
    assert "ms.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>" in text


@pytest.mark.parametrize(
    ("before", "after", "code", "message"),
    [
        ("@t : tensor<3x2xf32> =", "@t : tensor<2x3xf32> =", "MSC0201", "is a tensor<2x3xf32>, but its region gives"),
        ("@w : tensor<2x3xf32>\n    %t", "@x : tensor<2x3xf32>\n    %t", "MSC0205", "there is no parameter @x"),
        (
            "%u = ms.get_parameter @w : tensor<2x3xf32>",
            "%u = ms.get_parameter @w : tensor<2x3xf16>",
            "MSC0201",
            "is a tensor<2x3xf32>, not a",
        ),
        ("@w : tensor<2x3xf32>\n    %t", "@t : tensor<2x3xf32>\n    %t", "MSC0205", "is computed from itself"),
        ("ms.yield %t : tensor<3x2xf32>", "ms.yield", "MSC0200", "ends with an ms.yield of one value"),
        ("dense<[1.0, 2.0]> : tensor<2xf32>", "dense<1.0> : tensor<1025x2xf32>", "MSC0203", "use ms.parameter"),
    ],
)
def test_parameters_that_are_refused(before: str, after: str, code: str, message: str) -> None:
    assert before in PARAMETERS
    with pytest.raises(MscError) as raised:
        parsed(PARAMETERS.replace(before, after))
    assert any(d.code == code and message in d.message for d in raised.value.diagnostics), raised.value.diagnostics


def test_a_parameter_that_changes_its_name_is_not_found_under_the_old_one() -> None:
    module = parsed(PARAMETERS)
    (first, *_) = module.ops
    assert isinstance(first, ParameterOp)
    verify_module(module)
    first.sym_name = StringAttr("v")
    with pytest.raises(MscError, match="there is no parameter @w"):
        verify_module(module)
    first.sym_name = StringAttr("w")
    verify_module(module)
    first.detach()
    with pytest.raises(MscError, match="there is no parameter @w"):
        verify_module(module)
