"""The builder of `ms` operations: inferred types, numbers as constants, folding, where constants and weights go."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from msc.dialects import ms
from msc.dialects.ms.building import FOLD_BYTES, INLINE_BYTES, GraphBuilder
from msc.dialects.ms.shapes import tensor_type
from msc.dialects.ms.values import Value, computed
from msc.interp import evaluate_op
from msc.ir.errors import ShapeConflict


def started(*shape: int) -> tuple[GraphBuilder[Value], Value]:
    """A builder of a function of one f32 argument."""
    block = Block(arg_types=[tensor_type("f32", shape)])
    return GraphBuilder(block, Value, evaluate_op), computed(block.args[0])


def finished(builder: GraphBuilder[Value], *results: Value) -> ModuleOp:
    block = builder.block
    values = [builder.ssa(value) for value in results]
    block.add_op(ReturnOp(*values))
    types = [a.type for a in block.args], [v.type for v in values]
    module = ModuleOp([*builder.declarations(), FuncOp("main", types, Region(block))])
    module.verify()
    return module


def names(builder: GraphBuilder[Value]) -> list[str]:
    return [op.name.removeprefix("ms.") for op in builder.block.ops]


def test_numbers_take_the_element_type_of_the_last_tensor_and_stand_once_in_front() -> None:
    builder, x = started(2, 3)
    (y,) = builder.emit(ms.MulOp, x, 0.5)
    (z,) = builder.emit(ms.AddOp, 0.5, y)
    finished(builder, z)
    assert names(builder) == ["constant", "mul", "add", "func.return"]
    assert (z.dtype, z.shape) == ("f32", (2, 3))


def test_the_two_zeros_are_two_constants() -> None:
    builder, x = started(2)
    builder.emit(ms.MulOp, x, 0.0)
    builder.emit(ms.MulOp, x, -0.0)
    assert names(builder) == ["constant", "constant", "mul", "mul"]


def test_known_operands_are_evaluated() -> None:
    builder, x = started(4)
    table = builder.known(np.arange(4, dtype=np.float32))
    (doubled,) = builder.emit(ms.MulOp, table, 2)
    assert doubled.array is not None
    np.testing.assert_array_equal(doubled.array, [0, 2, 4, 6])
    halves = builder.emit(ms.SplitOp, doubled, axis=0, sizes=[2, 2])
    assert [v.array is not None for v in halves] == [True, True]
    finished(builder, *builder.emit(ms.AddOp, x, doubled))
    assert names(builder) == ["constant", "add", "func.return"]


def test_without_an_evaluator_nothing_is_folded() -> None:
    builder = GraphBuilder(Block(), Value)
    (value,) = builder.emit(ms.NegOp, builder.known(np.ones(2, np.float32)))
    assert value.array is None
    assert names(builder) == ["constant", "neg"]


def test_large_work_on_constants_is_left_to_the_compiler() -> None:
    builder, _ = started(1)
    (value,) = builder.emit(ms.BroadcastToOp, builder.known(np.ones(1, np.float32)), shape=[FOLD_BYTES])
    assert value.array is None


def test_large_constants_are_parameters_and_ranges_are_computed() -> None:
    builder, x = started(INLINE_BYTES)
    weight = np.linspace(0, 1, INLINE_BYTES, dtype=np.float32)
    (y,) = builder.emit(ms.AddOp, x, builder.known(weight, "fc.bias"))
    (z,) = builder.emit(ms.AddOp, builder.known(np.arange(3, 3 + 2 * INLINE_BYTES, 2, dtype=np.int64)), 0)
    (total,) = builder.emit(ms.AddOp, y, builder.known(weight, "fc.bias"))
    finished(builder, total, z)
    assert list(builder.parameters) == ["fc.bias", "fc.bias_1"]
    assert names(builder).count("get_parameter") == 2
    assert "iota" in names(builder)


def test_shape_errors_are_those_of_the_operation() -> None:
    builder, x = started(2, 3)
    with pytest.raises(ShapeConflict, match="2x3 and 4 do not broadcast"):
        builder.emit(ms.AddOp, x, builder.known(np.zeros(4, np.float32)))
    assert names(builder) == ["constant"]
