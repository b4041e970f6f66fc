"""Every operation of the ms dialect: its text, its inferred type, and what its compute definition says it does."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from msc.dialects.arrays import Array, numpy_dtype, tensor_dtype
from msc.dialects.ms import MS, OPERATIONS
from msc.dialects.ms.base import BasicOp, MsOp, ViewOp
from msc.interp.registry import evaluate_op
from msc.ir.errors import ShapeConflict
from msc.poly.compute import Combine, Statement, identity
from msc.poly.scalar import Apply, Cast, Constant, Index, Read, Scalar


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
    if not np.issubdtype(dtype, np.integer) and dtype.kind != "b":
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
    return np.trunc(a / b) if np.issubdtype(a.dtype, np.integer) else a / b


def dotted_bytes(a: Array, b: Array, c: Array) -> Array:
    """The four bytes of a word, without a sign and with one."""
    without = np.ascontiguousarray(a).reshape(*np.shape(a), 1).view(np.uint8).astype(np.int32)
    signed = np.ascontiguousarray(b).reshape(*np.shape(b), 1).view(np.int8).astype(np.int32)
    return c + (without * signed).sum(-1, dtype=np.int32)


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
    "erf": np.vectorize(math.erf, otypes=[float]),
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
    "dot_bytes": dotted_bytes,
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
        case Cast(arg, dtype, bits=True):
            return value_of(arg, point, operands).view(numpy_dtype(dtype))
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


Case = tuple[str, str]


def test_the_text_reads_back(case: Case) -> None:
    module = parsed(module_text(*case))
    assert str(parsed(str(module))) == str(module)
    assert str(parsed(generic(module))) == str(module)


def test_the_inferred_type_is_that_of_the_value(case: Case) -> None:
    op = operation_of(parsed(module_text(*case)))
    for index, value in enumerate(evaluate_op(op, *operands_for(op))):
        assert value.shape == op.result_shape(index)
        assert value.dtype == tensor_dtype(op.result_tensor(index))


def test_the_compute_definition_computes_the_value(case: Case) -> None:
    op = operation_of(parsed(module_text(*case)))
    if not op.is_basic:
        return
    assert isinstance(op, BasicOp)
    operands = operands_for(op)
    for value, expected in zip(computed(op, operands), evaluate_op(op, *operands), strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)


def test_inference_tolerates_unknown_sizes(case: Case) -> None:
    operation, types = case
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


def test_every_operation_is_tested(cases: list[Case]) -> None:
    tested = {operation.split()[0] for operation, _ in cases}
    structure = {"ms.constant", "ms.get_parameter", "ms.parameter", "ms.yield"}
    assert {op.name for op in OPERATIONS} - structure == tested


def test_every_operation_has_a_docstring() -> None:
    assert [op.name for op in OPERATIONS if not op.__doc__] == []


def test_views_keep_the_elements(cases: list[Case]) -> None:
    for operation, types in cases:
        op = operation_of(parsed(module_text(operation, types)))
        if isinstance(op, ViewOp):
            assert math.prod(op.shape(0)) == math.prod(op.result_shape())


def mutated_type(type_: str, rng: random.Random) -> str:
    """The type with other sizes, another rank or another element type."""
    *sizes, dtype = type_.split("x")
    kind = rng.random()
    if kind < 0.4:
        sizes = [rng.choice(["0", "1", "2", "3", "5", "?", size]) for size in sizes]
    elif kind < 0.6:
        sizes = [rng.choice("01235") for _ in range(rng.randrange(6))]
    elif kind > 0.9:
        dtype = rng.choice(["f16", "bf16", "f64", "i1", "i8", "ui64", "i4", "index"])
    return "x".join([*sizes, dtype])


def mutated_operation(operation: str, rng: random.Random) -> str:
    """The operation with other integers in its properties."""
    head, brace, properties = operation.partition("{")
    numbers = ["-3", "-2", "-1", "0", "1", "2", "4", "9"]
    return head + brace + re.sub(r"(?<![\w.])-?\d+(?![\w.])", lambda n: rng.choice([n[0], *numbers]), properties)


def test_inference_gives_a_type_or_says_why_not(cases: list[Case]) -> None:
    rng, accepted = random.Random(3), 0
    for _ in range(1500):
        operation, types = rng.choice(cases)
        types = " ".join(mutated_type(type_, rng) for type_ in types.split())
        try:
            op = operation_of(parsed(module_text(mutated_operation(operation, rng), types)))
        except (VerifyException, ParseError):
            continue
        accepted += 1
        if op.is_basic and "?" not in types:
            assert isinstance(op, BasicOp)
            assert all(0 <= s.result < len(op.results) for s in op.compute())
    assert accepted > 200
