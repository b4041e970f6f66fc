"""Which dimensions become one, and which stay apart, in kernels written by hand."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineExpr

from msc.poly.collapsing import collapsed
from msc.poly.compute import affine_map, dims
from msc.poly.model import Array, KernelModel, KernelStatement
from msc.poly.scalar import Apply, Cast, Index, Read, Scalar

H, W, K = 3, 5, 4
h, w, k = dims(3)


def product(x_index: list[AffineExpr], body: Scalar | None = None) -> KernelModel:
    """`y[h, w] += x[...] * v[k]`, unless another body is given."""
    arrays = (
        Array((H, W, K), "f32", "input"),
        Array((K,), "f32", "input"),
        Array((H, W), "f32", "output"),
    )
    factors = Read(0, affine_map(3, x_index), "f32"), Read(1, affine_map(3, [k]), "f32")
    body = body or Apply("mul", factors)
    statement = KernelStatement((H, W, K), ("h", "w", "k"), 2, affine_map(3, [h, w]), body, "add", 0)
    return KernelModel(arrays, (statement,), ("product",))


def test_an_image_becomes_one_row() -> None:
    model = collapsed(product([h, w, k]))
    (statement,) = model.statements
    place, step = dims(2)
    assert [a.shape for a in model.arrays] == [(H * W, K), (K,), (H * W,)]
    assert (statement.extents, statement.names) == ((H * W, K), ("h_w", "k"))
    assert statement.write == affine_map(2, [place])
    assert [map_ for _, map_ in statement.accesses()][1:] == [affine_map(2, [place, step]), affine_map(2, [step])]
    assert statement.reduced == (1,)


def test_a_whole_tensor_becomes_one_row() -> None:
    """Merging goes on until nothing is left to merge."""
    arrays = (Array((2, H, W), "f32", "input"), Array((2, H, W), "f32", "output"))
    body = Read(0, affine_map(3, [h, w, k]), "f32")
    copy = KernelStatement((2, H, W), ("n", "h", "w"), 1, affine_map(3, [h, w, k]), body, None, 0)
    model = collapsed(KernelModel(arrays, (copy,), ("copy",)))
    assert [a.shape for a in model.arrays] == [(2 * H * W,)] * 2
    assert model.statements[0].names == ("n_h_w",)


def test_a_dimension_of_one_iteration_does_not_keep_others_apart() -> None:
    arrays = (Array((H, W), "f32", "input"), Array((H, W), "f32", "output"))
    body = Read(0, affine_map(3, [h + k, w]), "f32")
    window = KernelStatement((H, W, 1), ("h", "w", "kh"), 1, affine_map(3, [h, w]), body, "add", 0)
    assert collapsed(KernelModel(arrays, (window,), ("window",))).arrays[0].shape == (H * W,)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(product([h, k, w]), id="not neighbours in one array"),
        pytest.param(product([h, AffineExpr.constant(2), k]), id="one of them alone"),
        pytest.param(product([h, w // 2, k]), id="not whole"),
        pytest.param(product([w, h, k]), id="the other way round"),
        pytest.param(product([h, w, k], Cast(Index(w), "f32")), id="computed with"),
        pytest.param(product([h, w, k], Read(0, affine_map(3, [h, w, k]), "f32", ((0, Index(k)),))), id="data"),
    ],
)
def test_apart(model: KernelModel) -> None:
    assert collapsed(model) == model
