"""The operations of the ms dialect, in texts that between them use every operation and property."""

from __future__ import annotations

import pytest

FLOAT_UNARY = (
    "neg abs sign exp expm1 log log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf sigmoid softplus floor ceil round trunc relu is_nan is_inf identity "
    "silu relu6 mish softsign selu hard_swish leaky_relu elu celu hard_sigmoid gelu softmax log_softmax"
).split()
NUMBER_BINARY = (
    "add sub mul div floor_div mod rem pow maximum minimum equal not_equal less less_equal greater greater_equal"
).split()

# Operation text (operands are %0, %1, ...) and operand types.
CASES: list[tuple[str, str]] = [
    *((f"ms.{name} %0", "3x4xf32") for name in FLOAT_UNARY),
    *((f"ms.{name} %0, %1", "3x1xf32 2x1x4xf32") for name in (*NUMBER_BINARY, "atan2")),
    *((f"ms.{name} %0, %1", "3x1xf32 2x1x4xf32") for name in ("mul_no_nan", "xlogy", "log_add_exp")),
    ("ms.logit %0", "3x4xf32"),
    ("ms.binary_cross_entropy %0, %1", "3x4xf32 4xf32"),
    *((f"ms.{name} %0, %1", "3x4xi32 4xi32") for name in NUMBER_BINARY if name != "pow"),
    *((f"ms.{name}imum %0, %1 {{to_first = true}}", "3x4xf32 4xf32") for name in ("max", "min")),
    *((f"ms.reduce_{name} %0 {{axis = [0, 2], to_first = true}}", "3x2x4xf32") for name in ("max", "min")),
    ("ms.sqrt %0 {flat = true}", "3x4xf32"),
    ("ms.pow %0, %1 {flat = true}", "3x4xf32 f32"),
    ("ms.clip %0 {min = -1.0, max = 5e-01, open = true}", "3x4xf32"),
    *((f"ms.logical_{name} %0, %1", "3x4xi1 4xi1") for name in ("and", "or", "xor")),
    *((f"ms.bitwise_{name} %0, %1", "3x4xi8 4xi8") for name in ("and", "or", "xor")),
    *((f"ms.reduce_{name} %0 {{axis = {axes}}}", "3x2x4xf32") for name in ("sum", "max") for axes in ("1", "[0, -1]")),
    *((f"ms.reduce_{name} %0 {{axis = 1, keep_dims = true}}", "3x2x4xf32") for name in ("min", "prod", "mean")),
    *((f"ms.reduce_{name} %0", "3x2xi32") for name in ("sum", "max", "min", "prod")),
    *((f"ms.reduce_{name} %0 {{axis = -1}}", "3x2xi1") for name in ("all", "any")),
    *((f"ms.arg{name} %0 {{axis = 0, select_last = true}}", "3x4xi8") for name in ("max", "min")),
    *((f"ms.arg{name} %0 {{keep_dims = true}}", "3x4xf32") for name in ("max", "min")),
    ("ms.reduce_max %0 {axis = 0}", "0x2xi32"),
    ("ms.reduce_sum %0", "f32"),
    ("ms.add %0, %1", "3x4xf16 4xf16"),
    ("ms.reciprocal %0", "3x4xbf16"),
    ("ms.cast %0 {dtype = bf16}", "3x4xf32"),
    ("ms.cast %0 {dtype = f64}", "3x4xf16"),
    ("ms.shift_left %0, %0", "4xi64"),
    ("ms.shift_right %0, %0", "4xi64"),
    ("ms.relu %0", "3xi8"),
    ("ms.abs %0", "3xi32"),
    ("ms.square %0", "3xi8"),
    ("ms.logical_not %0", "3x4xi1"),
    ("ms.bitwise_not %0", "3xi8"),
    ("ms.cast %0 {dtype = i8}", "3x4xf32"),
    ("ms.cast %0 {dtype = i1}", "3x4xf32"),
    ("ms.cast %0 {dtype = f64}", "3x4xi1"),
    ("ms.bit_cast %0 {dtype = i32}", "3x4xf32"),
    ("ms.bit_cast %0 {dtype = ui8}", "3x4xi1"),
    ("ms.select %0, %1, %2", "3x1xi1 f32 4xf32"),
    ('ms.gelu %0 {approximate = "tanh"}', "3xf32"),
    ("ms.prelu %0, %1", "2x3x4xf32 3xf32"),
    ("ms.clip %0 {min = -1.0, max = 5e-01}", "3x4xf32"),
    ("ms.clip %0 {max = 3}", "3x4xi32"),
    ("ms.quantize %0, %1 {dtype = ui8}", "3x4xf32 f32"),
    ("ms.quantize %0, %1, %2 {dtype = i16}", "2x3x4xf32 3x1xf32 3x1xi16"),
    ("ms.dequantize %0, %1", "3x4xi8 f32"),
    ("ms.dequantize %0, %1, %2", "2x3x4xui8 3x1xf32 3x1xui8"),
    ("ms.requantize %0, %1 {dtype = ui16}", "3x4xi32 f32"),
    ("ms.requantize %0, %1, %2 {dtype = i8}", "3x4xi32 4xf32 i8"),
    ("ms.rescale %0, %1, %2 {dtype = i32}", "3x4xi32 i32 i32"),
    ('ms.rescale %0, %1, %2, %3 {dtype = i8, rounding = "single"}', "3x4xi64 4xi32 4xi32 i8"),
    ("ms.packed_matmul %0, %1, %2", "3x64xf32 1x2x16x16xui8 1x2x16xf32"),
    ("ms.packed_matmul %0, %1, %2, %3 {bits = 2}", "2x32xf32 2x1x8x16xui8 2x1x16xf16 2x1x16xui8"),
    ("ms.packed_dot %0, %1, %2, %3, %4", "3x16xi32 3x2xf32 3x2xi32 1x2x4x16xi32 1x2x16xf32"),
    (
        "ms.packed_dot %0, %1, %2, %3, %4, %5 {bits = 8}",
        "2x8xi32 2x1xf32 2x1xi32 2x1x8x16xi32 2x1x16xf16 2x1x16xui8",
    ),
    ("ms.softmax %0 {axis = 0}", "3x4xf32"),
    ("ms.cumsum %0 {exclusive = true}", "3x4xf32"),
    ("ms.cumsum %0 {axis = 0, reverse = true}", "3x4xi32"),
    ("ms.argsort %0 {axis = 0}", "3x4xf32"),
    ('ms.all_reduce %0 {ranks = [0], groups = 1, reduce = "max"}', "3x4xf32"),
    ('ms.reduce_scatter %0 {ranks = [0], groups = 1, axis = 1, reduce = "max"}', "3x4xf32"),
    ("ms.reduce_scatter %0 {ranks = [0]}", "3x4xf32"),
    *((f"ms.{name} %0 {{ranks = [0], groups = 1, axis = 1}}", "3x4xf32") for name in ("all_gather", "all_slice")),
    ("ms.all_to_all %0 {ranks = [0], groups = 1, split = 1, concat = 0}", "3x4xf32"),
    ("ms.broadcast %0 {ranks = [0], groups = 1, root = 0}", "3x4xf32"),
    ("ms.send_recv %0 {ranks = [0], to = [0]}", "3x4xf32"),
    ("ms.argsort %0 {descending = true}", "2x19xf32"),
    ("ms.argsort %0 {count = 0}", "4x33xf32"),
    ("ms.argsort %0 {count = 2, descending = true}", "3x4xui8"),
    ("ms.matmul %0, %1", "3x4xf32 4x2xf32"),
    ("ms.matmul %0, %1 {transpose_a = true, transpose_b = true}", "4x3xi32 2x4xi32"),
    ("ms.batch_matmul %0, %1 {transpose_b = true}", "2x1x3x4xf32 5x2x4xf32"),
    ("ms.batch_matmul %0, %1 {transpose_a = true}", "4x3xf32 2x4x2xf32"),
    ("ms.dense %0, %1", "5x3x4xf32 2x4xf32"),
    ("ms.dense %0, %1, %2", "3x4xf32 2x4xf32 2xf32"),
    ("ms.conv1d %0, %1", "2x3x8xf32 4x3x3xf32"),
    ("ms.conv1d %0, %1 {stride = 2, dilation = 2, group = 3}", "2x3x9xf32 3x1x3xf32"),
    ("ms.conv2d %0, %1", "2x3x6x7xf32 4x3x3x2xf32"),
    ("ms.conv2d %0, %1 {stride = [2, 1], dilation = [1, 2], group = 2}", "1x4x7x8xf32 6x2x3x2xf32"),
    ('ms.conv2d %0, %1, %2 {pad_mode = "same", stride = 2}', "1x2x7x8xf32 3x2x3x2xf32 3xf32"),
    ('ms.conv2d %0, %1 {pad_mode = "pad", pad = [1, 0, 2, 1]}', "1x2x5x5xi32 3x2x3x3xi32"),
    ("ms.conv3d %0, %1 {stride = 2}", "1x2x5x4x5xf32 3x2x2x2x2xf32"),
    ("ms.conv1d_transpose %0, %1 {stride = 2, output_padding = 1}", "2x3x5xf32 3x2x3xf32"),
    (
        'ms.conv2d_transpose %0, %1, %2 {pad_mode = "pad", pad = [1, 0, 0, 1], group = 2}',
        "1x4x3x4xf32 4x1x2x3xf32 2xf32",
    ),
    ("ms.conv3d_transpose %0, %1", "1x2x2x2x2xf32 2x1x2x2x2xf32"),
    ("ms.subpixel_conv %0, %1 {begin = [1, 2]}", "2x3x4x5xf32 2x3x4x3x2x2xf32"),
    ("ms.subpixel_conv %0, %1 {begin = 1, group = 2}", "1x4x6xi32 2x6x2x3xi32"),
    *((f"ms.{kind}_pool1d %0 {{kernel_size = 3, stride = 2}}", "2x3x8xf32") for kind in ("max", "avg", "sum")),
    *(
        (f"ms.{kind}_pool2d %0 {{kernel_size = [2, 3], stride = 2, dilation = [2, 1]}}", "2x3x8x7xf32")
        for kind in ("max", "avg", "sum")
    ),
    *((f"ms.{kind}_pool3d %0 {{kernel_size = 2}}", "1x2x3x4x3xf32") for kind in ("max", "avg", "sum")),
    *(
        (f'ms.{kind}_pool2d %0 {{kernel_size = 3, stride = 2, pad_mode = "same"}}', "1x2x6x5xf32")
        for kind in ("max", "avg", "sum")
    ),
    *(
        (
            f'ms.{kind}_pool2d %0 {{kernel_size = 3, stride = 2, pad_mode = "pad", '
            "pad = [1, 1, 0, 1], ceil_mode = true}",
            "1x2x6x6xf32",
        )
        for kind in ("max", "avg", "sum")
    ),
    (
        'ms.avg_pool1d %0 {kernel_size = 3, pad_mode = "pad", pad = 1, count_include_pad = true, '
        "ceil_mode = true, stride = 3}",
        "1x2x8xf32",
    ),
    ("ms.max_pool1d %0 {kernel_size = 1, stride = 2, ceil_mode = true}", "1x2x8xf32"),
    ("ms.global_avg_pool %0", "2x3x4x5xf32"),
    ("ms.global_max_pool %0", "2x3x4xi32"),
    ("ms.batch_norm %0, %1, %2, %3, %4", "2x3x4xf32 3xf32 3xf32 3xf32 3xf32"),
    ("ms.layer_norm %0, %1, %2 {begin_norm_axis = 1, epsilon = 1e-05}", "2x3x4xf32 3x4xf32 3x4xf32"),
    ("ms.layer_norm %0, %1", "2x3x4xf32 4xf32"),
    ("ms.rms_norm %0, %1", "2x3x4xf32 4xf32"),
    ("ms.group_norm %0, %1, %2 {num_groups = 2}", "2x4x3xf32 4xf32 4xf32"),
    ("ms.instance_norm %0, %1, %2", "2x3x4x2xf32 3xf32 3xf32"),
    ("ms.l2_normalize %0 {axis = 1}", "2x3x4xf32"),
    ("ms.reshape %0 {shape = [2, -1]}", "3x4xf32"),
    ("ms.flatten %0", "2x3x4xf32"),
    ("ms.flatten %0 {axis = 0}", "2x3x4xi1"),
    ("ms.flatten %0 {axis = -1}", "2x3x4xf32"),
    ("ms.squeeze %0", "1x3x1xf32"),
    ("ms.squeeze %0 {axis = 0}", "1x3x1xf32"),
    ("ms.expand_dims %0 {axis = [0, -1]}", "3xf32"),
    ("ms.transpose %0", "2x3x4xf32"),
    ("ms.transpose %0 {perm = [1, 2, 0]}", "2x3x4xi8"),
    ("ms.broadcast_to %0 {shape = [2, -1, 4]}", "3x1xf32"),
    ("ms.concat %0, %1, %2 {axis = 1}", "2x3xf32 2x1xf32 2x0xf32"),
    ("ms.stack %0, %1 {axis = -1}", "2x3xf32 2x3xf32"),
    ("ms.split %0 {axis = -1, sizes = [1, 3]}", "2x4xf32"),
    ("ms.slice %0 {begin = [1, -1, 0], end = [9, -5, -1], strides = [2, -2, 1]}", "4x4x3xf32"),
    ("ms.slice %0 {begin = [1, 0], end = [2, 0]}", "4x4xi1"),
    ("ms.tile %0 {multiples = [2, 1, 3]}", "2x4xf32"),
    ("ms.reverse %0 {axis = [0, -1]}", "2x3x4xf32"),
    ("ms.pad %0 {pad = [1, 0, 0, 2], value = 1.5}", "2x3xf32"),
    ("ms.pad %0 {pad = [0, 1], value = -inf}".replace("-inf", '"-inf"'), "3xf32"),
    *((f'ms.pad %0 {{pad = [1, 2, 0, 1], mode = "{mode}"}}', "2x3xf32") for mode in ("edge", "reflect", "wrap")),
    ("ms.dilate %0 {interior = [1, 0, 2]}", "2x3x4xf32"),
    ("ms.windows %0 {size = [3, 2], stride = [2, 1]}", "1x2x5x4xf32"),
    ("ms.transform_axis %0 {axis = 1, matrix = [1.0, 0.0, -1.0, 0.5, 2.0, 0.5]}", "2x3x4xf32"),
    ("ms.gather %0, %1 {axis = 1}", "2x3x4xf32 2x2xi64"),
    ("ms.gather %0, %1", "3xf32 i64"),
    ("ms.gather_elements %0, %1 {axis = 1}", "3x4xf32 2x5xi64"),
    ("ms.extract_slice %0, %1", "3x4xf32 i64"),
    ("ms.insert_slice %0, %1, %2", "3x4xf32 i64 4xf32"),
    ("ms.scatter_add %0, %1, %2", "5x4xf32 3xi64 3x4xf32"),
    ("ms.scatter_add %0, %1, %2", "3xi32 2x2xi64 2x2xi32"),
    ("ms.stop_gradient %0", "3x4xf32"),
    ("ms.barrier %0, %1", "3x4xf32 5xf32"),
    (
        "ms.compute %0 {shape = [4], dtype = f32, "
        'statements = "for i < 4, k < 3: r0[i] = reduce_add(mul(x0.f32[i, k], f32(2.0)))"}',
        "4x3xf32",
    ),
    (
        "ms.compute %0, %1 {shape = [6], dtype = f32, statements = "
        '"for i < 6: r0[i] = f32(0.0); for i < 4, k < 3: r0[i + k] = update_add(mul(x0.f32[i], x1.f32[k]))"}',
        "4xf32 3xf32",
    ),
    ("ms.one_hot %0 {depth = 3, axis = 0, on_value = 2.0, off_value = -1.0, dtype = f32}", "2x4xi64"),
    ("ms.one_hot %0 {depth = 3, dtype = i8}", "4xi32"),
    ("ms.iota {shape = [2, 3], axis = 1, dtype = i64}", ""),
    ("ms.iota {shape = [4], dtype = f32}", ""),
    ("ms.tril %0 {diagonal = 1}", "2x3x4xf32"),
    ("ms.triu %0 {diagonal = -1}", "4x3xi8"),
    ("ms.resize_nearest %0 {size = [6, 2]}", "1x2x3x4xf32"),
    ("ms.resize_nearest %0 {size = [5, 5]}", "1x2x3x7xf32"),
    *(
        (f'ms.{name} %0 {{block_size = 2, mode = "{mode}"}}', "1x8x2x4xf32")
        for name in ("depth_to_space", "space_to_depth")
        for mode in ("DCR", "CRD")
    ),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES, ids=[" | ".join(case) for case in CASES])


@pytest.fixture
def cases() -> list[tuple[str, str]]:
    return CASES
