# What NumPy's functions give has no known type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
"""Functions made of others, layers of mathematics and detection operators, beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msc
from msc import Parameter, Tensor, nn, ops


def float32(values: list[Any]) -> Any:
    return np.array(values, np.float32)


def int32(values: list[int]) -> Any:
    return np.array(values, np.int32)


RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 3, 4)).astype(np.float32)
V, W = A[0], B[0]
NAN = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)

SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "block_diag": (ops.block_diag, lambda a, b: np.block([[a, np.zeros((3, 4))], [np.zeros((3, 4)), b]]), (A, B)),
    "column_stack": (lambda *x: ops.column_stack(x), lambda *x: np.column_stack(x), (V, W)),
    "diag_embed": (ops.diag_embed, lambda a: np.stack([np.diag(r) for r in a]), (A,)),
    "diag_embed, below": (lambda a: ops.diag_embed(a, -1), lambda a: np.stack([np.diag(r, -1) for r in a]), (A,)),
    "diff": (lambda a: ops.diff(a, 2, 0), lambda a: np.diff(a, 2, 0), (A,)),
    "dist": (lambda a, b: ops.dist(a, b, 3), lambda a, b: (np.abs(a - b) ** 3).sum() ** (1 / 3), (A, B)),
    "fmax": (ops.fmax, np.fmax, (NAN, np.array([1.0, 2.0, np.nan, 0.0], np.float32))),
    "fmin": (ops.fmin, np.fmin, (NAN, np.array([1.0, 2.0, np.nan, 0.0], np.float32))),
    "ger": (ops.ger, np.outer, (V, W)),
    "heaviside": (ops.heaviside, np.heaviside, (np.array([-1.0, 0.0, 2.0], np.float32), float32([0.5]))),
    "hypot": (ops.hypot, np.hypot, (A * np.float32(1e30), B * np.float32(1e30))),
    "logaddexp": (ops.logaddexp, np.logaddexp, (A * 100, B * 100)),
    "nan_to_num": (ops.nan_to_num, np.nan_to_num, (NAN,)),
    "nansum": (ops.nansum, np.nansum, (np.array([np.nan, 1.0, 2.0], np.float32),)),
    "sinc": (ops.sinc, np.sinc, (np.array([0.0, 0.5, -1.5], np.float32),)),
    "truncate_div": (ops.truncate_div, lambda a, b: np.trunc(a / b), (int32([7, -7]), int32([2, 2]))),
    "repeat_elements": (lambda a: ops.repeat_elements(a, 2, 1), lambda a: np.repeat(a, 2, 1), (A,)),
    "lp_norm": (lambda a: ops.LpNorm(1, 3)(a), lambda a: (np.abs(a) ** 3).sum(1) ** (1 / 3), (A,)),
    "sequence_mask": (lambda n: ops.sequence_mask(n, 4), lambda n: np.arange(4) < n[:, None], (int32([1, 3]),)),
    "Norm": (nn.Norm(1), lambda a: np.linalg.norm(a, axis=1), (A,)),
    "MatMul": (nn.MatMul(transpose_x2=True), lambda a, b: a @ b.T, (A, B)),
    "ReduceLogSumExp": (nn.ReduceLogSumExp(1), lambda a: np.log(np.exp(a).sum(1)), (A,)),
    "Moments": (lambda a: nn.Moments(1)(a)[1], lambda a: a.var(1), (A,)),
    "OneHot": (nn.OneHot(0, 4, 2.0, -1.0), lambda i: np.where(np.eye(4)[i].T == 1, 2, -1), (int32([1, 3]),)),
    "Range": (lambda: nn.Range(1, 8, 2)(), lambda: np.arange(1, 8, 2), ()),
    "CentralCrop": (nn.CentralCrop(0.5), lambda x: x[:, 2:6, 2:6], (RNG.random((3, 8, 8), np.float32),)),
    "PSNR": (nn.PSNR(), lambda a, b: 10 * np.log10(1 / ((a - b) ** 2).mean((1, 2, 3))), (A[None, None], B[None, None])),
    "norm": (msc.numpy.norm, np.linalg.norm, (A,)),
    "cbrt": (msc.numpy.cbrt, np.cbrt, (float32([-8, 27]),)),
    "take_along_axis": (
        lambda a, i: msc.numpy.take_along_axis(a, i, 1), lambda a, i: np.take_along_axis(a, i, 1),
        (A, np.argsort(A, 1)[:, :2]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_numbers_are_numpys(name: str) -> None:
    ours, theirs, arrays = SAME[name]
    wanted = np.asarray(theirs(*arrays))
    found = ours(*map(Tensor, arrays)).asnumpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted, 1e-5, 1e-6)


SPECIAL: dict[str, tuple[Callable[[Tensor], Any], Any]] = {
    "hypot": (lambda x: ops.hypot(x, x * 0), [0.0, 3.0]),
    "sinc": (ops.sinc, [0.0, 1.0]),
    "ClipByNorm": (lambda x: nn.ClipByNorm()(x, 1.0), [0.0, 0.0]),
    "nan_to_num": (ops.nan_to_num, [float("nan"), 1.0]),
    "logaddexp": (lambda x: ops.logaddexp(x, x), [1e4, -1e4]),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_gradients_are_finite_where_functions_are_special(name: str) -> None:
    function, values = SPECIAL[name]

    def total(x: Tensor) -> Any:
        return function(x).sum()

    gradient: Any = msc.grad(total)(Tensor(values, msc.float32))
    assert np.isfinite(gradient.asnumpy()).all()


def test_a_scaled_tensor_is_as_long_as_it_may_be() -> None:
    clipped = nn.ClipByNorm()(Tensor(A), Tensor(2.0)).asnumpy()
    np.testing.assert_allclose(np.linalg.norm(clipped), 2.0, 1e-6)
    assert (nn.ClipByNorm()(Tensor(A), Tensor(1e3)).asnumpy() == A).all()


def test_images_are_like_themselves() -> None:
    image = Tensor(RNG.random((2, 3, 16, 16), np.float32))
    np.testing.assert_allclose(nn.SSIM()(image, image).asnumpy(), 1.0, 1e-5)
    assert (nn.SSIM()(image, 1 - image).asnumpy() < 0.5).all()


@pytest.mark.parametrize(("name", "wanted"), [("Update", [5, 7]), ("Add", [6, 10]), ("Sub", [-4, -4])])
def test_parameters_change_at_indices(name: str, wanted: list[int]) -> None:
    p = Parameter(Tensor([1.0, 2.0, 3.0]), name="p")
    getattr(ops, f"Scatter{name}")()(p, Tensor([0, 2]), Tensor([5.0, 7.0]))
    assert p.asnumpy().tolist() == [wanted[0], 2, wanted[1]]
    with pytest.raises(msc.MscError, match="MSC0807"):
        getattr(ops, f"Scatter{name}")()(Tensor([1.0]), Tensor([0]), Tensor([5.0]))


# Boxes.

ANCHORS = np.array([[0, 0, 9, 9], [5, 5, 14, 14], [20, 30, 29, 49]], np.float32)
BOXES = np.array([[0, 0, 9, 9], [4, 6, 15, 16], [22, 28, 30, 47]], np.float32)


def test_overlaps_of_boxes() -> None:
    found = ops.IOU()(Tensor(ANCHORS), Tensor(BOXES[:2])).asnumpy()
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found[0], [1.0, 25 / 175, 0.0], 1e-6)
    with pytest.raises(msc.MscError, match="MSC0203"):
        ops.iou(Tensor(ANCHORS), Tensor(BOXES), "giou")


def test_decoding_undoes_encoding() -> None:
    means, deviations = (0.1, 0.0, -0.1, 0.0), (0.1, 0.1, 0.2, 0.2)
    moves = ops.BoundingBoxEncode(means, deviations)(Tensor(ANCHORS), Tensor(BOXES))
    decode = ops.BoundingBoxDecode((100, 100), means, deviations)
    np.testing.assert_allclose(decode(Tensor(ANCHORS), moves).asnumpy(), BOXES, 1e-4, 1e-4)
    inside = ops.BoundingBoxDecode((12, 13), means, deviations)(Tensor(ANCHORS), moves).asnumpy()
    assert inside[:, 2].max() == 13
    assert inside[:, 3].max() == 12


def test_boxes_inside_of_an_image() -> None:
    inside = ops.CheckValid()(Tensor(ANCHORS), Tensor(float32([40, 40, 1]))).asnumpy()
    assert inside.tolist() == [True, True, False]


def test_the_best_of_boxes_that_overlap_stays() -> None:
    rows = np.concatenate([BOXES, BOXES + 1])
    scores = float32([0.1, 0.9, 0.3, 0.8, 0.2, 0.7])[:, None]
    boxes, _, stays = ops.NMSWithMask(0.5)(Tensor(np.concatenate([rows, scores], 1)))
    assert (np.diff(boxes.asnumpy()[:, 4]) < 0).all()
    assert stays.asnumpy().sum() == 3


def test_true_elements_at_random() -> None:
    mask = RNG.random((4, 5)) < 0.5
    index, found = ops.RandomChoiceWithMask(256)(Tensor(mask))
    places = index.asnumpy()[found.asnumpy()]
    assert sorted(map(tuple, places.tolist())) == sorted(map(tuple, np.argwhere(mask).tolist()))
    assert ops.RandomChoiceWithMask(2)(Tensor(mask))[1].asnumpy().all()
