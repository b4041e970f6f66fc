"""Tensors: element types, elements, arithmetic and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import msc
from msc import Parameter, ParameterTuple, Tensor, ops


def test_element_types_of_data() -> None:
    assert Tensor(2).dtype is msc.int64
    assert Tensor(2.0).dtype is msc.float32
    assert Tensor([1.0, 2.0]).dtype is msc.float32
    assert Tensor(True).dtype is msc.bool_
    assert Tensor(np.ones(2)).dtype is msc.float64
    assert Tensor(np.ones(2), msc.float16).dtype is msc.float16
    assert str(msc.bfloat16) == "BFloat16"
    assert str(msc.uint8) == "UInt8"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (msc.int32, msc.float32, msc.float32),
        (msc.int64, msc.float16, msc.float16),
        (msc.float16, msc.bfloat16, msc.float32),
        (msc.uint8, msc.int8, msc.int16),
        (msc.bool_, msc.int32, msc.int32),
        (msc.float32, msc.float64, msc.float64),
    ],
)
def test_element_types_come_together(a: msc.DType, b: msc.DType, expected: msc.DType) -> None:
    assert (Tensor([1], a) + Tensor([1], b)).dtype is expected
    assert (Tensor([1], b) * Tensor([1], a)).dtype is expected


def test_numbers_keep_the_element_type_of_their_category() -> None:
    assert (Tensor([1], msc.int32) + 1).dtype is msc.int32
    assert (Tensor([1], msc.int32) + 1.5).dtype is msc.float32
    assert (Tensor([1.0], msc.float16) + 1.5).dtype is msc.float16
    assert (Tensor([1], msc.int32) / 2).dtype is msc.float32


def test_text() -> None:
    x = Tensor([5.0, 3.0])
    assert str(x) == "[5. 3.]"
    assert repr(x) == "Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  3.00000000e+00])"
    assert repr(Tensor([1, 2], msc.int32)) == "Tensor(shape=[2], dtype=Int32, value= [1, 2])"
    assert f"{Tensor(1.5):.2f}" == "1.50"


def test_an_array_of_the_user_is_never_written() -> None:
    given = np.zeros(3, np.float32)
    x = Tensor(given)
    x += 1
    assert not given.any()
    shared = Tensor.from_numpy(given)
    given[0] = 7
    assert shared.asnumpy()[0] == 7


def test_an_array_that_tensors_share_is_copied_before_it_is_handed_out() -> None:
    x = Tensor([1.0, 2.0])
    y = x.reshape(2, 1)
    y.asnumpy()[0] = 9
    assert x.tolist() == [1.0, 2.0]


def test_dlpack() -> None:
    x = Tensor([1.0, 2.0])
    np.testing.assert_array_equal(np.from_dlpack(x), [1, 2])


@pytest.mark.parametrize(
    ("code", "expression"),
    [
        ("MSC0801", lambda: Tensor([1j])),
        ("MSC0801", lambda: Tensor(1, "flot32")),
        ("MSC0803", lambda: Tensor([[1, 2], [3]])),
        ("MSC0803", lambda: Tensor("a")),
        ("MSC0804", lambda: bool(Tensor([1, 2]))),
        ("MSC0804", lambda: len(Tensor(1))),
        ("MSC0805", lambda: Tensor(1).reshap),
        ("MSC0806", lambda: Tensor(shape=(None, 4), dtype=msc.float32) + 1),
        ("MSC0807", lambda: Parameter(Tensor([1.0])).set_data(Tensor([1.0, 2.0]))),
        ("MSC0807", lambda: ParameterTuple([1])),
        ("MSC0811", lambda: ops.add(Tensor(1), "a")),  # pyright: ignore[reportArgumentType]
        ("MSC0811", lambda: ops.relu(None)),  # pyright: ignore[reportArgumentType]
        ("MSC0812", lambda: Tensor([1], msc.uint64) + Tensor([1], msc.int64)),
        ("MSC0201", lambda: Tensor([1, 2]) + Tensor([1, 2, 3])),
        ("MSC0814", lambda: msc.set_context(mod=0)),
    ],
)
def test_mistakes_have_codes_and_places(code: str, expression: object) -> None:
    assert callable(expression)
    with pytest.raises(msc.MscError) as caught:
        expression()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.location is not None
    assert diagnostic.location.file == __file__


def test_mistakes_are_also_python_errors() -> None:
    with pytest.raises(TypeError):
        Tensor("a")
    with pytest.raises(ValueError, match="2 and 3"):
        ops.add(Tensor([1, 2]), Tensor([1, 2, 3]))
    assert not hasattr(Tensor(1), "reshap")


def test_context_is_a_switch_and_a_block() -> None:
    assert msc.get_context("mode") == msc.PYNATIVE_MODE
    with msc.set_context(mode=msc.GRAPH_MODE):
        assert msc.get_context("mode") == msc.GRAPH_MODE
    assert msc.get_context("mode") == msc.PYNATIVE_MODE
