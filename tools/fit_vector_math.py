"""Derive the polynomial coefficients of the generated vector math (msc/codegen/c/vector_math).

    python tools/fit_vector_math.py

Every polynomial minimises the largest weighted error over its interval: Lawson's iteratively reweighted least squares
(1961) on Chebyshev nodes, targets in extended precision. Coefficients are then rounded to the working type one by one,
from the lowest power up, refitting the remaining ones after each. Prints the coefficients and the error that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Real = np.longdouble
Array = NDArray[Any]
NODES = 1500
LN2 = np.log(Real(2))
LOG2E = 1 / LN2


@dataclass(frozen=True)
class Fit:
    """A polynomial wanted: target and error weight as functions of the variable, interval, degree, coefficient type."""

    name: str
    target: Callable[[Array], Array]
    weight: Callable[[Array], Array]
    low: float
    high: float
    degree: int
    dtype: type[np.floating[Any]] = np.float32


def lawson(columns: Array, wanted: Array, iterations: int = 150) -> tuple[float, Array]:
    """The smallest largest residual found, and the coefficients that leave it."""
    weights = np.full(len(wanted), 1 / len(wanted))
    best = (math.inf, np.zeros(columns.shape[1]))
    for _ in range(iterations):
        root = np.sqrt(weights)
        solution = np.linalg.lstsq(columns * root[:, None], wanted * root, rcond=None)[0]
        errors = np.abs(columns @ solution - wanted)
        best = min(best, (float(errors.max()), solution), key=lambda pair: pair[0])
        weights *= errors / errors.max() + 1e-3
        weights /= weights.sum()
    return best


def chebyshev_nodes(low: float, high: float) -> Array:
    """Chebyshev nodes of the interval, in extended precision."""
    angles = Real(np.pi) * (np.arange(NODES) + Real(0.5)) / NODES
    return (Real(low) + Real(high)) / 2 + (Real(high) - Real(low)) / 2 * np.cos(angles)


def solve(fit: Fit) -> tuple[list[np.floating[Any]], float]:
    """Rounded coefficients from the constant term up, and the largest weighted error with them."""
    x = chebyshev_nodes(fit.low, fit.high)
    weight = fit.weight(x)
    scale = max(abs(fit.low), abs(fit.high))
    columns = np.stack([weight * (x / scale) ** power for power in range(fit.degree + 1)], axis=1).astype(np.float64)
    wanted = (fit.target(x) * weight).astype(np.float64)
    coefficients: list[np.floating[Any]] = []
    for power in range(fit.degree + 1):
        _, solution = lawson(columns[:, power:], wanted)
        coefficients.append(fit.dtype(solution[0] / scale**power))
        wanted = wanted - columns[:, power] * (float(coefficients[-1]) * scale**power)
    return coefficients, float(np.abs(wanted).max())


def erf(x: Array) -> Array:
    """The error function; double precision is ample for f32 coefficients."""
    return np.array([math.erf(v) for v in x.astype(float)], dtype=Real)


def minus_log_erfc(x: Array) -> Array:
    """-log(1 - erf(x))."""
    return np.array([-math.log(math.erfc(v)) for v in x.astype(float)], dtype=Real)


def far_erf_weight(x: Array) -> Array:
    """How much an error of -log(1 - erf) is worth relative to erf."""
    return np.exp(-minus_log_erfc(x)) / erf(x)


def erf_pieces() -> list[Fit]:
    """erf(x) / x around multiples of 1/4."""
    return [_piece("erf", erf, k, 0.25, 4, 4e-8) for k in range(16)]


def tanh_pieces() -> list[Fit]:
    """tanh(x) / x around multiples of 19/32."""
    return [_piece("tanh", np.tanh, k, 19 / 32, 6, 3e-8) for k in range(16)]


def _piece(name: str, function: Callable[[Array], Array], k: int, step: float, degree: int, end: float) -> Fit:
    """f(x) / x around k steps; the last of sixteen is larger by `end` at its end, where f32 rounds up to 1."""

    def target(t: Array) -> Array:
        x = np.maximum(k * step + t, Real(1e-12))
        return function(x) / x * (1 + (end * (x / step - 14.5) ** 2 if k == 15 else 0))

    return Fit(f"{name} at {k * step}", target, lambda t: 1 / target(t), -step / 2 if k else 0, step / 2, degree)


def fits() -> list[Fit]:
    """One entry per coefficient tuple of the package, in the order of its modules."""
    half_ln2 = float(LN2) / 2 * 1.002
    log_low, log_high = math.sqrt(0.5) - 1 - 1e-6, math.sqrt(2) - 1 + 1e-6
    atanh_limit = ((math.sqrt(2) - 1) / (math.sqrt(2) + 1) * 1.0001) ** 2
    quarter_pi = (math.pi / 4 * 1.001) ** 2
    root = np.sqrt
    return [
        Fit("exp", lambda r: (np.expm1(r) - r) / r**2, lambda r: r**2 / np.exp(r), -half_ln2, half_ln2, 4),
        Fit("expm1", lambda r: (np.expm1(r) - r) / r**2, lambda r: r**2 / abs(np.expm1(r)), -half_ln2, half_ln2, 5),
        Fit("exp2", lambda r: np.expm1(r * LN2) / r, lambda r: abs(r) / np.exp(r * LN2), -0.5, 0.5, 5),
        Fit(
            "log", lambda f: (np.log1p(f) - f + f * f / 2) / f**3, lambda f: abs(f**3 / np.log1p(f)),
            log_low, log_high, 7,
        ),
        Fit(
            "log2", lambda f: (np.log1p(f) - f) * LOG2E / f**2, lambda f: abs(f**2 / np.log1p(f)) * LN2,
            log_low, log_high, 8,
        ),
        Fit("erf near", lambda z: erf(root(z)) / root(z) - 1, lambda z: root(z) / erf(root(z)), 1e-9, 0.81, 5),
        Fit("erf far", minus_log_erfc, far_erf_weight, 0.9, 4.0, 6),
        Fit("sin", lambda z: (np.sin(root(z)) / root(z) - 1) / z, lambda z: z, 1e-6, quarter_pi, 2),
        Fit("cos", lambda z: (np.cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2, 1e-4, quarter_pi, 2),
        Fit(
            "pow log2", lambda z: 2 * LOG2E * np.arctanh(root(z)) / root(z),
            lambda z: root(z) / np.arctanh(root(z)) / 2 * LN2, 1e-8, atanh_limit, 5, np.float64,
        ),
        Fit("pow exp2", lambda r: np.exp(r * LN2), lambda r: np.exp(-r * LN2), -0.5, 0.5, 7, np.float64),
        *erf_pieces(),
        *tanh_pieces(),
    ]  # fmt: skip


def main() -> None:
    """Print every fit."""
    for fit in fits():
        coefficients, error = solve(fit)
        print(f"{fit.name}: error 2^{math.log2(error):.1f}")
        print("    " + ", ".join(str(c) for c in coefficients))


if __name__ == "__main__":
    main()
