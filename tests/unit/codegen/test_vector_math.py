"""The generated vector math, compiled by the system's C compiler and compared with float64."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from msc.codegen.c.vector_math import definitions, error_bound, is_vectorised, supported
from msc.codegen.c.vector_math.libm import COMPOSED, LIBM_ARITY
from msc.codegen.c.vector_math.registry import VECTOR_FUNCTIONS
from tests.unit.compilers import COMPILERS

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]


LANES = (1, 2, 4, 8, 16, 32)
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror")
UNARY = [name for name, function in VECTOR_FUNCTIONS.items() if function.arity == 1]


def _erf(x: F64) -> F64:
    return np.array([math.erf(v) for v in x.tolist()])


def _sigmoid(x: F64) -> F64:
    return np.where(x < 0, np.exp(x), 1.0) / (1.0 + np.exp(-np.abs(x)))


REFERENCES: Mapping[str, Callable[[F64], F64]] = {
    "erf": _erf,
    "sigmoid": _sigmoid,
    "softplus": lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    **{name: getattr(np, name) for name in UNARY if name not in ("erf", "sigmoid", "softplus", "rsqrt")},
}


def _loop(name: str, lanes: int, arity: int) -> str:
    """An entry point that applies one form of the function to whole arrays."""
    kind, suffix = ("float", "f32") if lanes == 1 else (f"f32x{lanes}", f"f32x{lanes}")
    loads = "".join(
        f"        {kind} v{i}; memcpy(&v{i}, {source} + i, sizeof v{i});\n" for i, source in enumerate("xy"[:arity])
    )
    call = f"msc_{name}_{suffix}({', '.join(f'v{i}' for i in range(arity))})"
    return (
        f"void {name}_{lanes}(const float *x, const float *y, float *out, long count)\n{{\n    (void)y;\n"
        f"    for (long i = 0; i < count; i += {lanes}) {{\n{loads}"
        f"        const {kind} result = {call};\n        memcpy(out + i, &result, sizeof result);\n    }}\n}}\n"
    )


def _build(folder: Path, text: str, flags: tuple[str, ...]) -> ctypes.CDLL:
    source, library = folder / "math.c", folder / "math.so"
    source.write_text(text)
    command = [
        COMPILERS[0],
        *WARNINGS,
        "-Wno-psabi",
        *flags,
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


@dataclass(frozen=True)
class Library:
    """A build of every function in every lane count."""

    handle: ctypes.CDLL

    def __call__(self, name: str, lanes: int, x: F32, y: F32 | None = None) -> F32:
        out = np.empty_like(x)
        second = x if y is None else y
        arrays = [ctypes.c_void_p(a.ctypes.data) for a in (x, second, out)]
        self.handle[f"{name}_{lanes}"](*arrays, ctypes.c_long(len(x)))
        return out


@pytest.fixture(
    scope="module",
    params=[
        ("-O2", "-march=native", "-ffp-contract=fast"),
        ("-O1", "-ffp-contract=off"),
        ("-O1", "-march=native", "-ffp-contract=off"),
    ],
    ids=str,
)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    uses = [(name, "f32", lanes) for name in VECTOR_FUNCTIONS for lanes in LANES]
    loops = (_loop(name, lanes, VECTOR_FUNCTIONS[name].arity) for name, _, lanes in uses)
    text = "\n".join(["#include <string.h>", definitions(uses), *loops])
    return Library(_build(tmp_path_factory.mktemp("vector_math"), text, request.param))


def _edges() -> F32:
    limits = np.finfo(np.float32)
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 2.0**23, 2.0**24, 2.0**24 + 2, 2.0**127, np.inf, np.nan]
    magnitudes += [limits.max, limits.tiny, limits.smallest_subnormal, 88.72284, 88.72283, 103.97208, 1.0 - 2.0**-24]
    values = np.array(magnitudes, dtype=np.float32)
    return np.concatenate([values, -values])


def _arguments() -> F32:
    """Every upper half word with five lower ones, the edges, and random values near 1 and of every magnitude."""
    upper = np.arange(2**16, dtype=np.uint32) << 16
    words = np.concatenate([upper | low for low in (0x0000, 0x0001, 0x5A5A, 0x8000, 0xFFFF)]).astype(np.uint32)
    generator = np.random.default_rng(7)
    anywhere = generator.integers(0, 2**32, 2**16, dtype=np.uint32)
    near = generator.normal(0.0, 4.0, 2**17).astype(np.float32)
    parts = [words.view(np.float32), anywhere.view(np.float32), near]
    return _padded(np.concatenate([*parts, _edges()]))


def _padded(values: F32) -> F32:
    return np.concatenate([values, np.ones(-len(values) % max(LANES), dtype=np.float32)])


def _ulp_errors(actual: F32, exact: F64) -> F64:
    """Error in f32 units in the last place; infinite where a NaN, an infinity or the sign of a zero is wrong."""
    exponent = np.clip(np.frexp(np.where(np.isfinite(exact), exact, 1.0))[1] - 24, -149, 104)
    with np.errstate(invalid="ignore"):
        got = actual.astype(np.float64)
    limit = 2.0**128
    errors = np.abs(np.clip(got, -limit, limit) - np.clip(exact, -limit, limit)) / np.ldexp(1.0, exponent)
    special = np.isnan(exact) | np.isinf(exact) | (exact == 0.0) | np.isnan(got)
    same = (np.isnan(exact) & np.isnan(got)) | ((got == exact) & (np.signbit(got) == np.signbit(exact)))
    return np.where(special, np.where(same, 0.0, np.inf), errors)


def _assert_same_bits(left: F32, right: F32) -> None:
    differ = (left.view(np.uint32) != right.view(np.uint32)) & ~(np.isnan(left) & np.isnan(right))
    assert not differ.any(), f"{differ.sum()} lanes differ"


@pytest.mark.parametrize("name", UNARY)
def test_error_is_within_the_stated_bound(library: Library, name: str) -> None:
    x = _arguments()
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](x.astype(np.float64))
    errors = _ulp_errors(library(name, 16, x), exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= error_bound(name, "f32").ulp, f"{name}({x[worst]!r}): {errors[worst]} ULP"


@pytest.mark.parametrize(("name", "start"), [("erf", 3.92), ("tanh", 9.1)])
def test_what_rises_to_one_is_one_where_one_is_nearest(library: Library, name: str, start: float) -> None:
    """So that what is multiplied by 1 - erf, as a GeLU's left tail, is zero there and not noise."""
    x = np.geomspace(start, 1e38, 128 * max(LANES), dtype=np.float32)
    for lanes in LANES:
        np.testing.assert_array_equal(library(name, lanes, x), np.ones_like(x))
        np.testing.assert_array_equal(library(name, lanes, -x), -np.ones_like(x))


@pytest.mark.parametrize("name", UNARY)
def test_all_forms_agree_bit_for_bit(library: Library, name: str) -> None:
    x = _arguments()
    scalar = library(name, 1, x)
    for lanes in LANES[1:]:
        _assert_same_bits(library(name, lanes, x), scalar)


def _power_arguments() -> tuple[F32, F32]:
    edges = np.concatenate([_edges(), np.arange(-9, 10, dtype=np.float32) / np.float32(2)])
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    generator = np.random.default_rng(11)
    words = generator.integers(0, 2**32, (2, 2**16), dtype=np.uint32).view(np.float32)
    bases = generator.lognormal(0.0, 8.0, 2**17).astype(np.float32)
    exponents = generator.normal(0.0, 6.0, 2**17).astype(np.float32)
    return _padded(np.concatenate([x, words[0], bases])), _padded(np.concatenate([y, words[1], exponents]))


def test_pow_is_within_the_stated_bound(library: Library) -> None:
    x, y = _power_arguments()
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    actual = library("pow", 16, x, y)
    errors = _ulp_errors(actual, exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= error_bound("pow", "f32").ulp, f"pow({x[worst]!r}, {y[worst]!r}): {actual[worst]!r}"
    for lanes in LANES:
        _assert_same_bits(library("pow", lanes, x, y), actual)


@pytest.mark.parametrize("name", UNARY)
def test_a_surrounding_product_and_sum_contract_alike(name: str, tmp_path: Path) -> None:
    """An FMA may swallow neither the product before a call nor the sum after it in one form only."""
    text = "#include <string.h>\n" + definitions([(name, "f32", 16), (name, "f32", 1)])
    text += (
        f"void vector(const float *a, const float *b, float *out)\n{{\n    f32x16 x, y;\n"
        f"    memcpy(&x, a, sizeof x);\n    memcpy(&y, b, sizeof y);\n"
        f"    const f32x16 z = msc_{name}_f32x16(x * y) + y;\n    memcpy(out, &z, sizeof z);\n}}\n"
        f"void scalar(const float *a, const float *b, float *out)\n{{\n    for (int i = 0; i < 16; ++i)\n"
        f"        out[i] = msc_{name}_f32(a[i] * b[i]) + b[i];\n}}\n"
    )
    library = _build(tmp_path, text, ("-O3", "-march=native", "-ffp-contract=fast"))
    generator = np.random.default_rng(3)
    for _ in range(200):
        a, b = generator.normal(0.0, 1.5, (2, 16)).astype(np.float32)
        results = np.empty((2, 16), dtype=np.float32)
        for entry, out in zip(("vector", "scalar"), results, strict=True):
            library[entry](*(ctypes.c_void_p(v.ctypes.data) for v in (a, b, out)))
        _assert_same_bits(results[0], results[1])


@pytest.mark.parametrize("name", VECTOR_FUNCTIONS)
def test_definitions_are_complete(name: str, tmp_path: Path) -> None:
    """Each function alone brings all that it needs, and compiles without a warning."""
    source = tmp_path / "one.c"
    source.write_text(definitions([(name, "f32", 8)]) + definitions([]))
    subprocess.run([COMPILERS[0], *WARNINGS, "-mavx2", "-fsyntax-only", str(source)], check=True)


def test_libm_forms(tmp_path: Path) -> None:
    uses = [(name, dtype, lanes) for name in LIBM_ARITY for dtype in ("f32", "f64") for lanes in (1, 4)]
    uses += [(name, "f64", lanes) for name in COMPOSED for lanes in (1, 4)]
    loops = "".join(
        f"double call_{name}(double x) {{ return msc_{name}_f64x4((f64x4){{x}})[0]; }}\n" for name in COMPOSED
    )
    library = _build(tmp_path, definitions(uses) + loops, ("-O1",))
    for name in COMPOSED:
        function = library[f"call_{name}"]
        function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
        for x in (0.25, 3.0, 40.0):
            expected = float(REFERENCES[name](np.array([x], dtype=np.float64))[0])
            assert math.isclose(function(x), expected, rel_tol=1e-15)


def test_text_depends_only_on_the_set_of_uses() -> None:
    uses = [("sigmoid", "f32", 16), ("exp", "f32", 16), ("exp", "f32", 1), ("pow", "f64", 4), ("exp", "f32", 8)]
    text = definitions(uses)
    assert definitions([*reversed(uses), uses[0]]) == text
    assert text.count("msc_exp_bounded_f32x16(f32x16 x)") == 1
    assert definitions([]) == ""


def test_what_is_supported() -> None:
    assert supported("exp", "f32")
    assert is_vectorised("exp", "f32")
    assert supported("exp", "f64")
    assert not is_vectorised("exp", "f64")
    assert supported("atan2", "f32")
    assert not supported("exp", "f16")
    assert not supported("system", "f32")
    assert error_bound("exp", "f32").ulp == 2
    with pytest.raises(ValueError, match="exp on f32 in 3 lanes"):
        definitions([("exp", "f32", 3)])
    with pytest.raises(ValueError, match="nothing on f32"):
        error_bound("nothing", "f32")
