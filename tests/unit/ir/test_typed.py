import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, f32, i32

from msc.ir import typed
from msc.ir.errors import DtypeConflict, ShapeConflict

TENSOR, BUFFER = TensorType(f32, [2, 3]), MemRefType(i32, [4])


def test_narrowing() -> None:
    assert typed.tensor_type(TENSOR) is TENSOR
    assert typed.memref_type(BUFFER) is BUFFER
    assert typed.shape(BUFFER) == (4,)
    assert typed.static_shape(TENSOR) == (2, 3)
    assert typed.element_type(TENSOR) == f32


def test_other_kinds_are_errors() -> None:
    for narrow, value in ((typed.tensor_type, BUFFER), (typed.memref_type, TENSOR), (typed.shape, f32)):
        with pytest.raises(DtypeConflict):
            narrow(value)
    with pytest.raises(ShapeConflict):
        typed.static_shape(TensorType(f32, [DYNAMIC_INDEX]))
