"""Sparse tensors against the tensors that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, ops
from msc.ops import COOTensor, CSRTensor, RowTensor

DENSE = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)


def test_forms_of_one_matrix() -> None:
    x = Tensor(DENSE)
    coo, csr = ops.dense_to_sparse_coo(x), ops.dense_to_sparse_csr(x)
    for made in (coo, csr, csr.to_coo(), coo.to_csr(), COOTensor(coo_tensor=coo), CSRTensor(csr_tensor=csr)):
        assert made.shape == DENSE.shape
        np.testing.assert_array_equal(made.to_dense().asnumpy(), DENSE)
        np.testing.assert_array_equal((made * 2).to_dense().asnumpy(), DENSE * 2)
        np.testing.assert_array_equal((made + made).to_dense().asnumpy(), DENSE * 2)
    v = np.array([[1.0], [2], [3], [4]], np.float32)
    np.testing.assert_allclose(csr.mv(Tensor(v)).asnumpy(), DENSE @ v)
    np.testing.assert_allclose(csr.mm(Tensor(v)).asnumpy(), DENSE @ v)
    np.testing.assert_allclose(csr.sum(1).asnumpy(), DENSE.sum(1, keepdims=True))


def test_equal_indices_are_added() -> None:
    coo = COOTensor(Tensor([[0, 0], [0, 0]]), Tensor([1.0, 2.0]), (2, 2))
    assert coo.to_dense().tolist() == [[3, 0], [0, 0]]
    assert coo.coalesce().values.tolist() == [3]
    rows = RowTensor(Tensor([1, 1]), Tensor([[1.0, 2.0], [3.0, 4.0]]), (3, 2))
    assert rows.to_dense().tolist() == [[0, 0], [4, 6], [0, 0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: COOTensor(Tensor([[0], [1]]), Tensor([1.0, 2.0]), (2, 2)),
        lambda: CSRTensor(Tensor([0, 1]), Tensor([0]), Tensor([1.0]), (2, 2)),
        lambda: RowTensor(Tensor([0]), Tensor([[1.0]]), (3, 2)),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Any) -> None:
    with pytest.raises(msc.MscError, match="MSC0201"):
        make()
