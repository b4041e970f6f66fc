"""Linear algebra of square matrices: factors, inverses, determinants, solutions of equations.

LAPACK computes them, by way of NumPy, outside of compiled graphs, which are split there. Gradients are formulas of
operations that have gradients, so that derivatives of all orders are there.
"""

# Values of user programs and lambdas of operators are of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false, reportUnnecessaryIsInstance=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from msc.frontend import dtypes
from msc.frontend.errors import ApiValueError
from msc.frontend.tensor import Tensor
from msc.ops import arithmetic, comparison, creation, joining, linear, reductions, selection, shapes, unary
from msc.ops.operands import as_float
from msc.ops.outside import on_arrays
from msc.ops.primitive import operator
from msc.support.arrays import Array

__all__ = [
    "Cholesky",
    "CholeskyInverse",
    "CholeskySolve",
    "Geqrf",
    "LogMatrixDeterminant",
    "Lstsq",
    "LuSolve",
    "LuUnpack",
    "MatrixDeterminant",
    "MatrixExp",
    "MatrixInverse",
    "MatrixPower",
    "MatrixSolve",
    "MatrixTriangularSolve",
    "Orgqr",
    "Ormqr",
    "Qr",
    "Svd",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "det",
    "eigh",
    "eigvalsh",
    "geqrf",
    "inverse",
    "log_matrix_determinant",
    "logdet",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "lu_unpack",
    "matrix_determinant",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_solve",
    "orgqr",
    "ormqr",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
]  # fmt: skip


def _checked(x: Tensor, name: str) -> Tensor:
    """Square matrices of floats. Raises MSC0201."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ApiValueError("MSC0201", f"{name}: a tensor of shape {x.shape} holds no square matrices")
    return as_float(x)


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with NumPy's refusals in words."""

    def called(*arrays: Array) -> Any:
        try:
            return function(*arrays)
        except np.linalg.LinAlgError as error:
            raise ApiValueError("MSC0203", f"{name}: {error}") from None

    return called


def transposed(x: Tensor) -> Tensor:
    """The matrices in the last two axes, transposed."""
    return shapes.swapaxes(x, -1, -2)


# Inverses and determinants.


def inverse(input: Tensor) -> Tensor:
    """The inverse of square matrices."""
    x = _checked(input, "inverse")

    def bprop(x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        return (unary.neg(linear.matmul(linear.matmul(transposed(out), dout), transposed(out))),)

    return on_arrays("inverse", _guarded("inverse", np.linalg.inv), x, bprop=bprop)


def det(input: Tensor) -> Tensor:
    """The determinant of square matrices."""
    x = _checked(input, "det")

    def bprop(x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        return (arithmetic.mul(_each(arithmetic.mul(dout, out)), transposed(inverse(x))),)

    return on_arrays("det", np.linalg.det, x, bprop=bprop)


def _each(x: Tensor) -> Tensor:
    """A number for each matrix, which broadcasts with them."""
    return shapes.reshape(x, (*x.shape, 1, 1))


def slogdet(input: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the log of its size."""
    x = _checked(input, "slogdet")

    def bprop(x: Tensor, out: Any, dout: Any) -> tuple[Tensor, ...]:
        return (arithmetic.mul(_each(dout[1]), transposed(inverse(x))),)

    return on_arrays("slogdet", lambda a: tuple(np.linalg.slogdet(a)), x, bprop=bprop)


def logdet(input: Tensor) -> Tensor:
    """The log of the determinant; NaN if it is negative."""
    sign, size = slogdet(input)
    return selection.where(sign < 0, float("nan"), size)


matrix_determinant, log_matrix_determinant = det, slogdet


def matrix_power(input: Tensor, n: int) -> Tensor:
    """The n-th power of square matrices; a negative one is that of the inverse."""
    x = _checked(input, "matrix_power")
    x = inverse(x) if n < 0 else x
    result, power, rest = None, x, abs(n)
    while rest:
        if rest & 1:
            result = power if result is None else linear.matmul(result, power)
        rest >>= 1
        power = linear.matmul(power, power) if rest else power
    eye = creation.eye(x.shape[-1], x.shape[-1], x.dtype)
    return shapes.broadcast_to(eye, x.shape) if result is None else result


def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of square matrices: scaled to a norm below 1, 18 terms of its series, and squared again."""
    x = _checked(input, "matrix_exp")
    size = float(reductions.amax(reductions.sum(unary.abs(x), -1))) if not x.is_symbolic else 16.0
    halvings = max(0, int(np.ceil(np.log2(size)))) + 1 if size > 0 else 0
    scaled = arithmetic.mul(x, 0.5**halvings)
    term = total = shapes.broadcast_to(creation.eye(x.shape[-1], x.shape[-1], x.dtype), x.shape)
    for k in range(1, 19):
        term = arithmetic.mul(linear.matmul(term, scaled), 1 / k)
        total = arithmetic.add(total, term)
    for _ in range(halvings):
        total = linear.matmul(total, total)
    return total


# Factors.


def cholesky(input_x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangle L with L L^T = x of positive definite matrices, or its transpose."""
    x = _checked(input_x, "cholesky")

    def bprop(x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        product = creation.tril(linear.matmul(transposed(out), dout))
        half = arithmetic.sub(product, arithmetic.mul(_on_diagonal(product), 0.5))
        back = inverse(out)
        middle = linear.matmul(linear.matmul(transposed(back), half), back)
        return (arithmetic.mul(arithmetic.add(middle, transposed(middle)), 0.5),)

    lower = on_arrays("cholesky", _guarded("cholesky", np.linalg.cholesky), x, bprop=bprop)
    return transposed(lower) if upper else lower


def _on_diagonal(x: Tensor) -> Tensor:
    """The diagonal of matrices, 0 elsewhere."""
    return arithmetic.mul(x, creation.eye(x.shape[-1], x.shape[-1], x.dtype))


def cholesky_inverse(input_x: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrices whose Cholesky factor this is."""
    lower = transposed(input_x) if upper else input_x
    return inverse(linear.matmul(lower, transposed(lower)))


def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The x with A x = input, for the Cholesky factor `input2` of A."""
    lower = transposed(input2) if upper else input2
    return solve_triangular(transposed(lower), solve_triangular(lower, input, lower=True), lower=False)


def qr(input: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q with orthogonal columns and an upper triangle R with Q R = x; `mode` is "reduced" or "complete"."""
    if mode not in ("reduced", "complete"):
        raise ApiValueError("MSC0203", f"qr: mode is {mode!r}, not 'reduced' or 'complete'")

    x = as_float(input)
    rows, columns = x.shape[-2:]
    if columns > rows:  # The first columns give Q; its products with the others are the rest of R.
        q, r = qr(joining.narrow(x, -1, 0, rows), mode)
        rest = linear.matmul(transposed(q), joining.narrow(x, -1, rows, columns - rows))
        return q, joining.concat([r, rest], -1)

    def factors(a: Array) -> Any:
        return tuple(np.linalg.qr(a, mode))

    def bprop(x: Tensor, out: Any, dout: Any) -> tuple[Tensor, ...]:
        q, r = out
        dq, dr = dout
        m = arithmetic.sub(linear.matmul(r, transposed(dr)), linear.matmul(transposed(dq), q))
        lower = creation.tril(m, -1)
        symmetric = arithmetic.add(creation.tril(m), transposed(lower))
        found = arithmetic.add(dq, linear.matmul(q, symmetric))
        return (linear.matmul(found, transposed(inverse(r))),)

    has_gradient = mode == "reduced" or rows == columns
    return on_arrays(
        "qr of mode 'complete'" if not has_gradient else "qr", factors, x, bprop=bprop if has_gradient else None
    )


def svd(input: Tensor, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular values, falling, and with `compute_uv` U and V: x = U diag(s) V^T."""
    x = as_float(input)

    def factors(a: Array) -> Any:
        u, s, vt = np.linalg.svd(a, full_matrices)
        return s, u, np.swapaxes(vt, -1, -2)

    def bprop(x: Tensor, out: Any, dout: Any) -> tuple[Tensor, ...]:
        s, u, v = out
        ds, du, dv = dout
        squares = unary.square(s)
        gaps = arithmetic.sub(shapes.expand_dims(squares, -2), shapes.expand_dims(squares, -1))
        f = selection.where(
            comparison.equal(gaps, 0), 0.0, arithmetic.div(1.0, selection.where(comparison.equal(gaps, 0), 1.0, gaps))
        )
        ut, vt, row = transposed(u), transposed(v), shapes.expand_dims(s, -2)
        a = arithmetic.mul(f, _skew(linear.matmul(ut, du)))
        b = arithmetic.mul(f, _skew(linear.matmul(vt, dv)))
        inner = arithmetic.add(arithmetic.mul(a, row), arithmetic.mul(shapes.expand_dims(s, -1), b))
        inner = arithmetic.add(inner, matrices_of(ds))
        whole = linear.matmul(linear.matmul(u, inner), vt)
        k, m, n = s.shape[-1], x.shape[-2], x.shape[-1]
        if m > k:
            rest = arithmetic.sub(arithmetic.div(du, row), linear.matmul(u, linear.matmul(ut, arithmetic.div(du, row))))
            whole = arithmetic.add(whole, linear.matmul(rest, vt))
        if n > k:
            rest = arithmetic.sub(arithmetic.div(dv, row), linear.matmul(v, linear.matmul(vt, arithmetic.div(dv, row))))
            whole = arithmetic.add(whole, linear.matmul(u, transposed(rest)))
        return (whole,)

    if full_matrices and compute_uv and x.shape[-1] != x.shape[-2]:
        return on_arrays("svd with full_matrices", factors, x)
    found = on_arrays("svd", factors, x, bprop=bprop)
    return found if compute_uv else found[0]


def _skew(x: Tensor) -> Tensor:
    return arithmetic.sub(x, transposed(x))


def matrices_of(diagonal: Tensor) -> Tensor:
    """Matrices with diagonals, 0 elsewhere."""
    size = diagonal.shape[-1]
    return arithmetic.mul(shapes.expand_dims(diagonal, -2), creation.eye(size, size, diagonal.dtype))


def eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvalues of symmetric matrices, rising, and the eigenvectors as columns."""

    def bprop(x: Tensor, out: Any, dout: Any) -> tuple[Tensor, ...]:
        w, v = out
        dw, dv = dout
        gaps = arithmetic.sub(shapes.expand_dims(w, -2), shapes.expand_dims(w, -1))
        f = selection.where(
            comparison.equal(gaps, 0), 0.0, arithmetic.div(1.0, selection.where(comparison.equal(gaps, 0), 1.0, gaps))
        )
        inner = arithmetic.add(arithmetic.mul(f, linear.matmul(transposed(v), dv)), matrices_of(dw))
        found = linear.matmul(linear.matmul(v, inner), transposed(v))
        return (arithmetic.mul(arithmetic.add(found, transposed(found)), 0.5),)

    factors = _guarded("eigh", lambda x: tuple(np.linalg.eigh(x)))
    return on_arrays("eigh", factors, _checked(a, "eigh"), bprop=bprop)


def eigvalsh(a: Tensor) -> Tensor:
    """The eigenvalues of symmetric matrices, rising."""
    return eigh(a)[0]


def _plu(a: Array) -> tuple[Array, Array]:
    """L without its diagonal and U in one matrix, and with which row each row was exchanged in turn (from 1 on)."""
    factors = a.astype(a.dtype)
    pivots = np.zeros((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    for batch in np.ndindex(*a.shape[:-2]):
        x = factors[batch]
        for k in range(min(x.shape)):
            p = k + int(np.argmax(np.abs(x[k:, k])))
            pivots[(*batch, k)] = p + 1
            x[[k, p]] = x[[p, k]]
            if x[k, k] != 0:
                x[k + 1 :, k] /= x[k, k]
                x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return factors, pivots


def _lu_bprop(x: Tensor, out: Any, dout: Any) -> tuple[Tensor, ...]:
    """The gradient of packed factors: of the square block of both, to which what lies below or beside it gives."""
    packed, pivots = out
    rows, columns = x.shape[-2:]
    k, counts = min(rows, columns), dout[0]
    p, lower, upper = lu_unpack(packed, pivots)
    l1, u1 = joining.narrow(lower, -2, 0, k), joining.narrow(upper, -1, 0, k)
    square = joining.narrow(joining.narrow(counts, -2, 0, k), -1, 0, k)
    by_l, by_u, beyond = linear.matmul(transposed(l1), creation.tril(square, -1)), creation.triu(square), None
    by_u = linear.matmul(by_u, transposed(u1))
    if rows > columns:
        l2, given = joining.narrow(lower, -2, k, rows - k), joining.narrow(counts, -2, k, rows - k)
        beyond = transposed(solve(u1, transposed(given)))
        by_u = arithmetic.sub(by_u, linear.matmul(transposed(l2), given))
    elif columns > rows:
        u2, given = joining.narrow(upper, -1, k, columns - k), joining.narrow(counts, -1, k, columns - k)
        beyond = solve(transposed(l1), given)
        by_l = arithmetic.sub(by_l, linear.matmul(given, transposed(u2)))
    inner = arithmetic.add(creation.tril(by_l, -1), creation.triu(by_u))
    found = transposed(solve(u1, transposed(solve(transposed(l1), inner))))
    found = found if beyond is None else joining.concat([found, beyond], -2 if rows > columns else -1)
    return (linear.matmul(p, found),)


def lu_factor(a: Tensor) -> tuple[Tensor, Tensor]:
    """The factors L and U in one matrix, and the exchanges of rows, from 0 on (Int32)."""
    packed, pivots = on_arrays("lu_factor", _plu, _checked(a, "lu_factor"), bprop=_lu_bprop)
    return packed, arithmetic.sub(pivots, 1)


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of what `lu_factor` packs, with exchanges counted from 1: P L U is the matrix."""
    del unpack_data, unpack_pivots

    def permutation(pivots: Array) -> Array:
        size = LU_data.shape[-2]
        made = np.zeros((*pivots.shape[:-1], size, size), LU_data.dtype.numpy)
        for batch in np.ndindex(*pivots.shape[:-1]):
            order = np.arange(size)
            for k, p in enumerate(pivots[batch]):
                order[[k, p - 1]] = order[[p - 1, k]]
            made[batch][order, np.arange(size)] = 1
        return made

    rows, columns = LU_data.shape[-2:]
    k = min(rows, columns)
    left, right = joining.narrow(LU_data, -1, 0, k), joining.narrow(LU_data, -2, 0, k)
    lower = arithmetic.add(creation.tril(left, -1), creation.eye(rows, k, LU_data.dtype))
    return on_arrays("lu_unpack", permutation, LU_pivots), lower, creation.triu(right)


def lu(a: Tensor, permute_l: bool = False) -> Any:
    """P, L and U with P L U = a, or P L and U."""
    packed, pivots = on_arrays("lu", _plu, as_float(a), bprop=_lu_bprop)
    p, lower, upper = lu_unpack(packed, pivots)
    return (linear.matmul(p, lower), upper) if permute_l else (p, lower, upper)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The x with A x = b, for A as `lu_unpack` takes it."""
    p, lower, upper = lu_unpack(LU_data, LU_pivots)
    return solve_triangular(upper, solve_triangular(lower, linear.matmul(transposed(p), b), lower=True))


# Equations.


def solve(a: Tensor, b: Tensor) -> Tensor:
    """The x with a x = b, for square matrices; b has columns, or is a vector."""
    x, y = _checked(a, "solve"), as_float(b)
    is_vector = y.ndim == 1 or y.ndim < x.ndim
    y = shapes.expand_dims(y, -1) if is_vector else y

    def bprop(a: Tensor, b: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
        back = solve(transposed(a), dout)
        return unary.neg(linear.matmul(back, transposed(out))), back

    found = on_arrays("solve", _guarded("solve", np.linalg.solve), x, y, bprop=bprop)
    return shapes.squeeze(found, -1) if is_vector else found


def matrix_solve(matrix: Tensor, rhs: Tensor, adjoint: bool = False) -> Tensor:
    """The x with matrix x = rhs, or with the transposed matrix."""
    return solve(transposed(matrix) if adjoint else matrix, rhs)


def solve_triangular(a: Tensor, b: Tensor, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Tensor:
    """The x with a x = b for triangular matrices: of the other triangle, and of a unit diagonal, nothing is read."""
    part = creation.tril(a) if lower else creation.triu(a)
    if unit_diagonal:
        part = arithmetic.add(
            creation.tril(a, -1) if lower else creation.triu(a, 1), creation.eye(a.shape[-1], a.shape[-1], a.dtype)
        )
    return solve(transposed(part) if trans in (1, 2, "T", "C") else part, b)


def _triangular_solve(matrix: Tensor, rhs: Tensor, *, lower: bool = True, adjoint: bool = False) -> Tensor:
    """The x with matrix x = rhs for a triangle, or with the transposed one."""
    return solve_triangular(matrix, rhs, "T" if adjoint else 0, lower)


def lstsq(input: Tensor, A: Tensor) -> Tensor:
    """The x for which A x is nearest to the input, or the shortest one."""
    return linear.matmul(pinv(input), A)


def pinv(x: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse; singular values up to max(atol, rtol times the largest) count as 0."""
    del hermitian
    s, u, v = svd(as_float(x))
    most = shapes.expand_dims(reductions.amax(s, -1), -1)
    eps = float(np.finfo(x.dtype.numpy).eps) if x.dtype in (dtypes.float32, dtypes.float64) else 1e-6
    share = (0.0 if atol is not None else eps * max(x.shape[-2:])) if rtol is None else rtol
    limit = arithmetic.maximum(arithmetic.mul(most, share), 0.0 if atol is None else atol)
    kept = selection.where(s > limit, arithmetic.div(1.0, selection.where(s > limit, s, 1.0)), 0.0)
    return linear.matmul(arithmetic.mul(v, shapes.expand_dims(kept, -2)), transposed(u))


def cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: norm times norm of the inverse; without p the ratio of the singular values."""
    if p in (None, 2, -2):
        s = svd(A, compute_uv=False)
        most, least = reductions.amax(s, -1), reductions.amin(s, -1)
        return arithmetic.div(least, most) if p == -2 else arithmetic.div(most, least)
    return arithmetic.mul(matrix_norm(A, p), matrix_norm(inverse(A), p))


def matrix_norm(
    A: Tensor, ord: Any = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False, *, dtype: Any = None
) -> Tensor:
    """A norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    x = shapes.movedim(as_float(A), axis, (-2, -1))
    x = x if dtype is None else shapes.cast(x, dtype)
    infinite = ord in (float("inf"), float("-inf"))
    if ord == "fro":
        found = reductions.norm(x, 2, (-2, -1))
    elif ord in ("nuc", 2, -2):
        s = svd(x, compute_uv=False)
        found = (
            reductions.sum(s, -1) if ord == "nuc" else reductions.amax(s, -1) if ord == 2 else reductions.amin(s, -1)
        )
    elif infinite or ord in (1, -1):
        sums = reductions.sum(unary.abs(x), -1 if infinite else -2)
        found = reductions.amax(sums, -1) if ord > 0 else reductions.amin(sums, -1)
    else:
        raise ApiValueError("MSC0203", f"matrix_norm: there is no norm {ord!r}")
    if not keepdims:
        return found
    first, second = sorted(a % A.ndim for a in axis)
    return shapes.expand_dims(shapes.expand_dims(found, first), second)


def geqrf(input: Tensor) -> tuple[Tensor, Tensor]:
    """The QR factors as LAPACK packs them: R and the Householder vectors below it, and their factors tau."""

    def packed(a: Array) -> Any:
        h, tau = np.linalg.qr(a, "raw")
        return np.swapaxes(h, -1, -2), tau

    return on_arrays("geqrf", packed, as_float(input))


def _reflected(packed: Tensor, tau: Tensor, columns: int) -> Tensor:
    """The first columns of the product of Householder's reflections, one after the other from the last on."""
    rows, count = packed.shape[-2], tau.shape[-1]
    vectors = arithmetic.add(
        creation.tril(joining.narrow(packed, -1, 0, count), -1), creation.eye(rows, count, packed.dtype)
    )
    made = creation.eye(rows, columns, packed.dtype)
    for k in reversed(range(count)):
        v = joining.narrow(vectors, -1, k, 1)
        factor = shapes.expand_dims(joining.narrow(tau, -1, k, 1), -1)
        made = arithmetic.sub(made, arithmetic.mul(factor, linear.matmul(v, linear.matmul(transposed(v), made))))
    return made


def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The columns of Q of what `geqrf` packs."""
    return _reflected(input, input2, input.shape[-1])


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q times `other`, or `other` times Q, for the Q that `geqrf` packs, which may be transposed."""
    q = _reflected(input, tau, input.shape[-2])
    q = transposed(q) if transpose else q
    return linear.matmul(q, other) if left else linear.matmul(other, q)


def _svd(input: Tensor, *, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular values, and with `compute_uv` U and V, which are empty otherwise."""
    s, u, v = svd(input, full_matrices)
    return (s, u, v) if compute_uv else (s, creation.zeros((), s.dtype), creation.zeros((), s.dtype))


def _qr(x: Tensor, *, full_matrices: bool = False) -> tuple[Tensor, Tensor]:
    """Q and R."""
    return qr(x, "complete" if full_matrices else "reduced")


def _inverse(x: Tensor, *, adjoint: bool = False) -> Tensor:
    """The inverse, transposed if `adjoint`."""
    return transposed(inverse(x)) if adjoint else inverse(x)


Cholesky = operator("Cholesky", cholesky, "upper")
CholeskyInverse = operator("CholeskyInverse", cholesky_inverse, "upper")
CholeskySolve = operator("CholeskySolve", cholesky_solve, "upper")
Geqrf = operator("Geqrf", geqrf)
LogMatrixDeterminant = operator("LogMatrixDeterminant", slogdet)
LuSolve = operator("LuSolve", lu_solve)
LuUnpack = operator("LuUnpack", lu_unpack, "unpack_data unpack_pivots")
Lstsq = operator("Lstsq", lstsq)
MatrixDeterminant = operator("MatrixDeterminant", det)
MatrixExp = operator("MatrixExp", matrix_exp)
MatrixInverse = operator("MatrixInverse", _inverse, "adjoint")
MatrixPower = operator("MatrixPower", matrix_power, "n")
MatrixSolve = operator("MatrixSolve", matrix_solve, "adjoint")
MatrixTriangularSolve = operator("MatrixTriangularSolve", _triangular_solve, "lower adjoint")
Orgqr = operator("Orgqr", orgqr)
Ormqr = operator("Ormqr", ormqr, "left transpose")
Qr = operator("Qr", _qr, "full_matrices")
Svd = operator("Svd", _svd, "full_matrices compute_uv")
