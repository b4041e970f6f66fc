"""Values of inputs and expected outputs on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from msc.driver.models.model_inputs import Elements, arrays_of, choose_inputs, read_values
from msc.driver.models.model_outputs import Tolerance, check_expected
from msc.runtime.program import TensorSpec
from msc.support.diagnostics import MscError

SCALAR, VECTOR = TensorSpec("n", "n", "f32", ()), TensorSpec("k", "k", "i8", (3,))


@pytest.mark.parametrize("text", ["n=f32=2", "n=2", "n=2.0", "n= 2"])
def test_scalars(text: str) -> None:
    (n,) = choose_inputs([SCALAR], read_values([text]), None)
    assert (n.shape, n.dtype, float(n)) == ((), np.float32, 2)


@pytest.mark.parametrize(
    ("text", "values"), [("k=1,-2,3", [1, -2, 3]), ("k=7", [7, 7, 7]), ("k=3xi8=1,2,3", [1, 2, 3])]
)
def test_elements_take_the_tensor_s_type(text: str, values: list[int]) -> None:
    (k,) = choose_inputs([VECTOR], read_values([text]), None)
    assert k.dtype == np.int8
    assert k.tolist() == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k=1.5", "'1.5' is no i8, which goes from -128 to 127"),
        ("k=300", "'300' is no i8, which"),
        ("k=a", "'a' is no i8"),
        ("k=1,2", r"2 elements given, 3 needed \(or one, which fills all\)"),
        ("k=3xq8=1", "'3xq8' is not a type; write .* or f32=1 for a scalar"),
        ("k=", "'' is not a type"),
        ("k", "write NAME="),
        ("k=i1=2", "'2' is no i1; write true or false"),
        ("k=f32=x", "'x' is no f32"),
        ("k=99999999999xf32=1", "elements are too many"),
        ("k=@nowhere.npy", "'nowhere.npy' cannot be read: No such file"),
        (f"k=@{__file__}", "is no .npy file of numbers"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(MscError, match=rf"MSC0607\]: --input k.*{message}"):
        choose_inputs([VECTOR], read_values([text]), None)


def test_expected_outputs() -> None:
    outputs = {"m": np.array(2, np.float32), "q": np.array([1, 2], np.int8)}
    check_expected(outputs, read_values(["m=2", "q=1,2"], "--expect"), Tolerance(0, 0))
    with pytest.raises(MscError, match=r"MSC0608.*'m' differs"):
        check_expected(outputs, read_values(["m=3"], "--expect"), Tolerance(0, 0))


def test_where_no_tensor_is_known_a_type_is_needed() -> None:
    values = read_values(["axes=0,1"])
    assert isinstance(values["axes"], Elements)
    with pytest.raises(MscError, match=r"MSC0607.*axes=2xi64=\.\.\."):
        arrays_of(values)


def test_seeds_are_not_negative() -> None:
    with pytest.raises(MscError, match=r"MSC0008.*-1"):
        choose_inputs([VECTOR], {}, -1)


def test_names_of_files_that_are_not_unicode(tmp_path: Path) -> None:
    with pytest.raises(MscError, match="cannot be read"):
        read_values([f"k=@{tmp_path}/a\udcff.npy"])
