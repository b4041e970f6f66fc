"""Every operation of the ms dialect: its text, its inferred type, and what its compute definition says it does."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.printer import Printer

from msc.dialects.ms import MS, OPERATIONS
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.interp.arrays import Array, numpy_dtype, tensor_dtype
from msc.interp.registry import evaluate_op
from msc.ir.errors import ShapeConflict
from msc.poly.compute import Combine, Statement, identity
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar

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
    *((f"ms.{name} %0, %1", "3x4xi32 4xi32") for name in NUMBER_BINARY if name != "pow"),
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
    ("ms.select %0, %1, %2", "3x1xi1 f32 4xf32"),
    ('ms.gelu %0 {approximate = "tanh"}', "3xf32"),
    ("ms.prelu %0, %1", "2x3x4xf32 3xf32"),
    ("ms.clip %0 {min = -1.0, max = 5e-01}", "3x4xf32"),
    ("ms.clip %0 {max = 3}", "3x4xi32"),
    ("ms.softmax %0 {axis = 0}", "3x4xf32"),
    ("ms.cumsum %0 {exclusive = true}", "3x4xf32"),
    ("ms.cumsum %0 {axis = 0, reverse = true}", "3x4xi32"),
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
    ("ms.gather %0, %1 {axis = 1}", "2x3x4xf32 2x2xi64"),
    ("ms.gather %0, %1", "3xf32 i64"),
    ("ms.gather_elements %0, %1 {axis = 1}", "3x4xf32 2x5xi64"),
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


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Func, MS):
        ctx.load_dialect(dialect)
    return ctx


def module_text(operation: str, types: str) -> str:
    arguments = ", ".join(f"%{i} : tensor<{type_}>" for i, type_ in enumerate(types.split()))
    results = ":2" if "ms.split" in operation else ""
    return f"func.func @main({arguments}) {{\n  %r{results} = {operation}\n  func.return\n}}"


def parsed(text: str) -> ModuleOp:
    module = Parser(context(), text).parse_module()
    module.verify()
    return module


def operation_of(module: ModuleOp) -> MsOp:
    return next(op for op in module.walk() if isinstance(op, MsOp))


def generic(module: ModuleOp) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


def random_array(rng: np.random.Generator, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Floats around 0, small places as i64, and other integers without 0, which division excludes."""
    if dtype.kind == "f":
        return rng.uniform(-2, 2, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype == np.int64:
        return rng.integers(0, 2, shape) - (rng.integers(0, 2, shape) if len(shape) > 1 else 0)
    values = rng.integers(-100 if dtype.kind == "i" else 0, 100, shape)
    return np.where(values == 0, 7, values).astype(dtype)


def operands_for(op: MsOp) -> list[Array]:
    rng = np.random.default_rng(7)
    return [random_array(rng, tensor_dtype(op.tensor(i)), op.shape(i)) for i in range(len(op.operands))]


# A naive evaluator of compute definitions: one array of indices a dimension, one element a point.


def reciprocal_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def log_one_plus_exp(x: Array) -> Array:
    return np.log1p(np.exp(x))


def divide(a: Array, b: Array) -> Array:
    return a / b if a.dtype.kind == "f" else np.trunc(a / b)


SCALARS: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "not": np.invert,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": reciprocal_root,
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "floor", "ceil", "trunc")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "erf": np.vectorize(math.erf),
    "sigmoid": logistic,
    "softplus": log_one_plus_exp,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "rem": np.fmod,
    "mod": np.mod,
    "pow": np.power,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "select": np.where,
}

COMBINERS: dict[Combine, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def place_of(index: AffineMap, point: list[Array]) -> list[Array]:
    zero = np.zeros_like(point[0]) if point else np.zeros((), np.int64)
    return [zero + affine(expr, point) for expr in index.results]


def affine(expr: AffineExpr, point: list[Array]) -> Array:
    return cast(Array, expr.eval(cast(Any, point), []))


def value_of(scalar: Scalar, point: list[Array], operands: Sequence[Array]) -> Array:
    match scalar:
        case Constant(value, dtype):
            return np.asarray(value).astype(numpy_dtype(dtype))
        case Index(expr):
            return affine(expr, point)
        case Cast(arg, dtype):
            return value_of(arg, point, operands).astype(numpy_dtype(dtype))
        case Apply(op, args):
            values = [value_of(arg, point, operands) for arg in args]
            return np.asarray(SCALARS[op](*values)).astype(numpy_dtype(scalar.dtype))
        case Read(operand, index, dtype, indirect):
            assert operands[operand].dtype == numpy_dtype(dtype)
            place = place_of(index, point)
            for axis, chosen in indirect:
                place[axis] = value_of(chosen, point, operands)
            for axis, indices in enumerate(place):
                assert np.all((indices >= 0) & (indices < operands[operand].shape[axis]))
            return operands[operand][tuple(place)]


def run(statement: Statement, operands: Sequence[Array], result: Array) -> None:
    point = list(np.indices(statement.extents))
    body = value_of(statement.body, point, operands)
    assert body.dtype == result.dtype
    # A leading axis of size 1 gives a scalar result a place that NumPy can index with arrays.
    place, target = (np.zeros(statement.extents, np.int64), *place_of(statement.write, point)), result[None]
    if statement.combine is None:
        target[place] = body
        return
    if not statement.accumulate:
        target[place] = identity(statement.combine, statement.body.dtype)
    COMBINERS[statement.combine].at(target, place, np.broadcast_to(body, statement.extents))


def computed(op: BasicOp, operands: Sequence[Array]) -> list[Array]:
    results: list[Array] = []
    for index in range(len(op.results)):
        dtype = tensor_dtype(op.result_tensor(index))
        results.append(np.full(op.result_shape(index), 77 if dtype.kind != "b" else 0, dtype))
    with np.errstate(all="ignore"):
        for statement in op.compute():
            combine = statement.combine
            if combine is not None and 0 in statement.extents:
                results[statement.result][...] = identity(combine, statement.body.dtype)
            run(statement, operands, results[statement.result])
    return results


@pytest.mark.parametrize(("operation", "types"), CASES)
def test_the_text_reads_back(operation: str, types: str) -> None:
    module = parsed(module_text(operation, types))
    assert str(parsed(str(module))) == str(module)
    assert str(parsed(generic(module))) == str(module)


@pytest.mark.parametrize(("operation", "types"), CASES)
def test_the_inferred_type_is_that_of_the_value(operation: str, types: str) -> None:
    op = operation_of(parsed(module_text(operation, types)))
    for index, value in enumerate(evaluate_op(op, *operands_for(op))):
        assert value.shape == op.result_shape(index)
        assert value.dtype == tensor_dtype(op.result_tensor(index))


BASIC_CASES = [case for case in CASES if operation_of(parsed(module_text(*case))).is_basic]


@pytest.mark.parametrize(("operation", "types"), BASIC_CASES)
def test_the_compute_definition_computes_the_value(operation: str, types: str) -> None:
    op = operation_of(parsed(module_text(operation, types)))
    assert isinstance(op, BasicOp)
    operands = operands_for(op)
    for value, expected in zip(computed(op, operands), evaluate_op(op, *operands), strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("operation", "types"), CASES)
def test_inference_tolerates_unknown_sizes(operation: str, types: str) -> None:
    known = operation_of(parsed(module_text(operation, types)))
    unknown = re.sub(r"\b\d+x", "?x", types)
    try:
        op = operation_of(parsed(module_text(operation, unknown)))
    except ShapeConflict as conflict:
        if "known" in str(conflict):
            return
        raise
    for index in range(len(op.results)):
        pairs = zip(op.result_shape(index), known.result_shape(index), strict=True)
        assert all(a in (-1, b) for a, b in pairs)


def test_every_operation_is_tested() -> None:
    tested = {operation.split()[0] for operation, _ in CASES}
    structure = {"ms.constant", "ms.get_parameter", "ms.parameter", "ms.yield"}
    assert {op.name for op in OPERATIONS} - structure == tested


def test_every_operation_has_a_docstring() -> None:
    assert [op.name for op in OPERATIONS if not op.__doc__] == []


def test_views_keep_the_elements() -> None:
    for operation, types in CASES:
        op = operation_of(parsed(module_text(operation, types)))
        if isinstance(op, ViewOp):
            assert math.prod(op.shape(0)) == math.prod(op.result_shape())
