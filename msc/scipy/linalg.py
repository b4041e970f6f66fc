"""MindSpore's `scipy.linalg`, with gradients; `overwrite_...` and `check_finite` change nothing."""

from __future__ import annotations

from typing import Any

from msc import ops
from msc.frontend.boundary import publish
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops.operands import only_tensor

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "eigvalsh", "expm", "inv", "lstsq", "lu",
    "lu_factor", "lu_solve", "solve", "solve_triangular",
]  # fmt: skip


def block_diag(*arrs: Any) -> Tensor:
    """Matrices along the diagonal of one that is 0 elsewhere; vectors are rows."""
    return ops.block_diag(*(only_tensor(a, "block_diag") for a in arrs))


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The inverse of square matrices."""
    del overwrite_a, check_finite
    return ops.inverse(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The determinant of square matrices."""
    del overwrite_a, check_finite
    return ops.det(a)


def expm(A: Any) -> Tensor:
    """The exponential of square matrices."""
    return ops.matrix_exp(A)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The triangle of which a positive definite matrix is the product with its transpose."""
    del overwrite_a, check_finite
    return ops.cholesky(a, not lower)


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Tensor, bool]:
    """The triangle, and whether it is the lower one, as `cho_solve` takes them."""
    del overwrite_a, check_finite
    return ops.cholesky(a, not lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """The x with a x = b, for what `cho_factor` gives of a."""
    del overwrite_b, check_finite
    factor, lower = c_and_lower
    return (
        ops.cholesky_solve(ops.expand_dims(b, -1), factor, not lower).squeeze(-1)
        if b.ndim == 1
        else ops.cholesky_solve(b, factor, not lower)
    )


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: Any = None, type: int = 1, check_finite: bool = True,
) -> Any:  # fmt: skip
    """The eigenvalues of a symmetric matrix, rising, and the eigenvectors as columns. Raises MSC0203."""
    del overwrite_a, overwrite_b, turbo, check_finite
    if b is not None or eigvals is not None or type != 1:
        raise ApiValueError("MSC0203", "eigh: b, eigvals and type are not there", help="eigh(a) gives all eigenvalues")
    part = ops.tril(a) if lower else ops.triu(a)
    whole = ops.add(part, ops.swapaxes(ops.tril(a, -1) if lower else ops.triu(a, 1), -1, -2))
    values, vectors = ops.eigh(whole)
    return values if eigvals_only else (values, vectors)


def eigvalsh(a: Any, lower: bool = True) -> Tensor:
    """The eigenvalues of a symmetric matrix, rising."""
    return eigh(a, None, lower, True)


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """P, L and U with P L U = a, or P L and U."""
    del overwrite_a, check_finite
    return ops.lu(a, permute_l)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The factors in one matrix, and the exchanges of rows (Int32)."""
    del overwrite_a, check_finite
    return ops.lu_factor(a)


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0) -> Tensor:
    """The x with a x = b, for what `lu_factor` gives of a."""
    packed, pivots = lu_and_piv
    p, lower, upper = ops.lu_unpack(packed, ops.add(pivots, 1))
    whole = ops.matmul(ops.matmul(p, lower), upper)
    return ops.solve(ops.swapaxes(whole, -1, -2) if trans else whole, b)


def solve(a: Any, b: Any) -> Tensor:
    """The x with a x = b."""
    return ops.solve(a, b)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False,
    debug: Any = None, check_finite: bool = True,
) -> Tensor:  # fmt: skip
    """The x with a x = b for a triangle."""
    del overwrite_b, debug, check_finite
    return ops.solve_triangular(a, b, trans, lower, unit_diagonal)


def lstsq(A: Any, B: Any, rcond: Any = None, driver: Any = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The x for which A x is nearest to B, the squares of what is left, the rank and the singular values."""
    del driver
    found = ops.matmul(ops.pinv(A, rtol=rcond), B)
    rest = ops.sum(ops.square(ops.sub(ops.matmul(A, found), B)), 0)
    s = ops.svd(A, compute_uv=False)
    rank = ops.sum(ops.cast(s > s[0] * 1e-6, ops.Tensor([0]).dtype))
    return found, rest, rank, s


publish(globals(), __all__, "scipy.linalg")
