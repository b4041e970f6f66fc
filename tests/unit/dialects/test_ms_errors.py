"""What the ms operations refuse: each message names what conflicts, and its code is the right one."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func

from msc.dialects.ms import MS
from msc.ir.reading import parse_module
from msc.support.diagnostics import MscError

SHAPES = "MSC0201"
DTYPES = "MSC0202"
PROPERTIES = "MSC0203"

ERRORS: list[tuple[str, str, str, str]] = [
    ("ms.matmul %0, %1", "3x4xf32 5x2xf32", SHAPES, "3x4 times 5x2: inner sizes 4 and 5 differ"),
    ("ms.matmul %0, %1 {transpose_b = true}", "3x4xf32 4x2xf32", SHAPES, "3x4 times 4x2 (transposed)"),
    ("ms.matmul %0, %1", "2x3x4xf32 4x2xf32", SHAPES, "operand 0 is 2x3x4, of rank 3; the rank must be 2"),
    ("ms.batch_matmul %0, %1", "2x3x4xf32 3x4x2xf32", SHAPES, "sizes 2 and 3 meet"),
    ("ms.dense %0, %1", "3x4xf32 2x5xf32", SHAPES, "x of 3x4 does not fit the weight of 2x5"),
    ("ms.dense %0, %1, %2", "3x4xf32 2x4xf32 3xf32", SHAPES, "the bias is 3, the weight 2x4"),
    ("ms.add %0, %1", "2x3xf32 4xf32", SHAPES, "shapes 2x3 and 4 do not broadcast: sizes 3 and 4 meet"),
    ("ms.add %0, %1", "2xf32 2xi32", DTYPES, "element types f32 and i32"),
    ("ms.exp %0", "2xi32", DTYPES, "operand 0 has element type i32, but must be a float"),
    ("ms.neg %0", "2xui8", DTYPES, "must be a signed number"),
    ("ms.add %0, %0", "2xi4", DTYPES, "element type i4"),
    ("ms.add %0, %0", "2xindex", DTYPES, "element type index"),
    ("ms.logical_and %0, %0", "2xi8", DTYPES, "must be a boolean"),
    ("ms.select %0, %1, %1", "2xf32 2xf32", DTYPES, "operand 0 has element type f32, but must be a boolean"),
    ("ms.select %0, %1, %2", "2xi1 2xf32 2xf16", DTYPES, "f32 and f16"),
    ("ms.bit_cast %0 {dtype = i64}", "2xf32", DTYPES, "f32 and i64 are not of the same width"),
    ("ms.cast %0 {dtype = i4}", "2xf32", PROPERTIES, "dtype is i4, not one of"),
    ('ms.gelu %0 {approximate = "tanhh"}', "2xf32", PROPERTIES, "did you mean 'tanh'?"),
    ('ms.conv2d %0, %1 {pad_mode = "sane"}', "1x2x5x5xf32 3x2x3x3xf32", PROPERTIES, "did you mean 'same'?"),
    ("ms.softmax %0 {axis = 2}", "2x3xf32", PROPERTIES, "axis 2 is not between -2 and 1"),
    ("ms.reduce_sum %0 {axis = [0, -2]}", "2x3xf32", PROPERTIES, "names an axis twice"),
    ("ms.reduce_sum %0 {dtype = f32}", "2xi32", PROPERTIES, "dtype is f32; of i32 the result is i32"),
    ("ms.matmul %0, %0 {dtype = bf16}", "2x2xf16", PROPERTIES, "of f16 the result is f16 or f32"),
    ("ms.argmax %0", "2x0xf32", SHAPES, "there is nothing to choose from"),
    ("ms.argsort %0 {count = 4}", "2x3xf32", PROPERTIES, "axis 1 of 2x3 has 3 elements"),
    ("ms.conv2d %0, %1", "1x2x5x5xf32 3x4x3x3xf32", SHAPES, "x has 2 channels, the weight takes 4"),
    ("ms.conv2d %0, %1 {group = 2}", "1x4x5x5xf32 3x2x3x3xf32", SHAPES, "3 output channels do not divide"),
    ("ms.conv2d %0, %1", "1x2x2x5xf32 3x2x3x3xf32", SHAPES, "a window of 3x3 does not fit"),
    ("ms.conv2d %0, %1, %2", "1x2x5x5xf32 3x2x3x3xf32 4xf32", SHAPES, "the bias is 4, but"),
    ("ms.conv2d %0, %1 {stride = [0, 1]}", "1x2x5x5xf32 3x2x3x3xf32", PROPERTIES, "stride [0, 1] must have 2"),
    ("ms.conv2d %0, %1 {pad = 1}", "1x2x5x5xf32 3x2x3x3xf32", PROPERTIES, "pad has no meaning"),
    ("ms.conv2d_transpose %0, %1", "1x2x5x5xf32 3x2x3x3xf32", SHAPES, "x has 2 channels, the weight takes 3"),
    ('ms.max_pool1d %0 {pad_mode = "pad", pad = 1}', "1x2x5xf32", PROPERTIES, "smaller than the window"),
    ("ms.global_avg_pool %0", "2x3xf32", SHAPES, "no spatial axes"),
    ("ms.batch_norm %0, %1, %1, %1, %1", "2x3x4xf32 4xf32", SHAPES, "the scale is 4, but 2x3x4 needs 3"),
    ("ms.layer_norm %0, %1", "2x3xf32 2xf32", SHAPES, "the gamma is 2, but 2x3 needs 3"),
    ("ms.group_norm %0, %1, %1 {num_groups = 2}", "2x3x4xf32 3xf32", PROPERTIES, "num_groups 2 does not divide"),
    ("ms.reshape %0 {shape = [5, -1]}", "2x3xf32", SHAPES, "2x3 has 6 elements"),
    ("ms.reshape %0 {shape = [-1, -1]}", "2x3xf32", PROPERTIES, "may have one -1"),
    ("ms.squeeze %0 {axis = 1}", "1x3xf32", SHAPES, "axis 1 of 1x3 has size 3, not 1"),
    ("ms.transpose %0 {perm = [0, 0]}", "2x3xf32", PROPERTIES, "names an axis twice"),
    ("ms.broadcast_to %0 {shape = [2, 4]}", "2x3xf32", SHAPES, "do not broadcast"),
    ("ms.broadcast_to %0 {shape = [3]}", "2x3xf32", SHAPES, "2x3 does not broadcast to 3"),
    ("ms.concat %0, %1", "2x3xf32 2x4xf32", SHAPES, "2x3 and 2x4 differ outside axis 0"),
    ("ms.concat", "", SHAPES, "needs one operand or more"),
    ("ms.stack %0, %1", "2xf32 3xf32", SHAPES, "shapes 2 and 3 differ"),
    ("ms.split %0 {sizes = [1, 2]}", "4xf32", SHAPES, "add up to 3, but axis 0 of 4 has size 4"),
    ("ms.slice %0 {begin = [0], end = [2], strides = [0]}", "4xf32", PROPERTIES, "no stride may be 0"),
    ("ms.pad %0 {pad = [1, 0], value = 300.0}", "4xi8", PROPERTIES, "value is 300.0, which is not a value of element"),
    ("ms.clip %0 {max = 0.5}", "4xi8", PROPERTIES, "max is 0.5, which is not a value of element type i8"),
    ("ms.conv1d %0, %1", "1x2x0xf32 3x2x1xf32", SHAPES, "has no elements"),
    (
        'ms.conv1d_transpose %0, %1 {pad_mode = "pad", pad = [2, 3]}',
        "1x2x3xf32 2x2x2xf32",
        SHAPES,
        "leaves no output",
    ),
    ("ms.global_max_pool %0", "2x3x0xf32", SHAPES, "nothing to pool"),
    ("ms.pad %0 {pad = [-1, 0]}", "4xf32", PROPERTIES, "pad [-1, 0] must have 2 entries of 0 or more"),
    ('ms.pad %0 {pad = [4, 0], mode = "reflect"}', "4xf32", SHAPES, "has 3 at most"),
    ("ms.gather %0, %1", "4xf32 2xf32", DTYPES, "must be a signed integer"),
    ("ms.gather_elements %0, %1", "2x3xf32 2x4xi64", SHAPES, "indices of 2x4 do not fit x of 2x3"),
    ("ms.one_hot %0 {depth = -1, dtype = f32}", "2xi64", PROPERTIES, "depth is -1"),
    ("ms.tril %0", "3xf32", SHAPES, "must be of rank 2 or more"),
    ("ms.depth_to_space %0 {block_size = 2}", "1x3x2x2xf32", SHAPES, "axis 1 of 1x3x2x2 is not a multiple of 4"),
    ("ms.conv2d %0, %1 {strides = 2}", "1x2x5x5xf32 3x2x3x3xf32", "MSC0110", "did you mean 'stride'?"),
    ("ms.transpose %0 {perm = 1.5}", "2xf32", "MSC01", "is not a list of integers, which property 'perm' takes"),
    ("ms.softmax %0 {axis = true}", "2xf32", "MSC01", "is not an integer"),
    ("ms.reshape %0", "2xf32", PROPERTIES, "ms.reshape needs property 'shape'"),
    ("ms.add %0", "2xf32", "MSC0200", "operand 'rhs' is missing"),
    ("ms.exp %0, %0", "2xf32", "MSC0200", "takes at most 1 operands, not 2"),
    ("ms.exp %1", "2xf32", "MSC01", "not defined"),
    (
        "ms.exp %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>",
        "2xf32",
        "MSC01",
        "1 operands, but 2 operand types",
    ),
]


def message_of(operation: str, types: str) -> tuple[str, str]:
    arguments = ", ".join(f"%{i} : tensor<{type_}>" for i, type_ in enumerate(types.split()))
    ctx = Context()
    for dialect in (Builtin, Func, MS):
        ctx.load_dialect(dialect)
    with pytest.raises(MscError) as raised:
        parse_module(ctx, f"func.func @main({arguments}) {{\n  %r = {operation}\n  func.return\n}}", "test.mir")
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.location is not None
    assert diagnostic.location.line == 2
    return diagnostic.code, f"{diagnostic.message} {diagnostic.help or ''}"


@pytest.mark.parametrize(("operation", "types", "code", "message"), ERRORS)
def test_the_mistake_is_named(operation: str, types: str, code: str, message: str) -> None:
    actual_code, actual_message = message_of(operation, types)
    assert message in actual_message
    assert actual_code.startswith(code)


@pytest.mark.parametrize(
    ("declared", "message"),
    [("3x2xf32", "is declared to give tensor<3x2xf32>, but its operands give tensor<2x3xf32>"), ("2x3xf16", "f16")],
)
def test_a_wrong_result_type_is_refused(declared: str, message: str) -> None:
    ctx = Context()
    for dialect in (Builtin, Func, MS):
        ctx.load_dialect(dialect)
    type_ = f"tensor<{declared}>"
    text = (
        f"func.func @main(%0 : tensor<2x3xf32>) {{\n  %r = ms.exp %0 : (tensor<2x3xf32>) -> {type_}\n  func.return\n}}"
    )
    module = parse_module(ctx, text, "test.mir")
    with pytest.raises(Exception, match="declared") as raised:
        module.verify()
    assert message in str(raised.value)
