"""A program that adds two scalar operators to msc, one record each, and uses them at every level.

`cbrt` has a name upstream and in C, and an own text for vectors; `bump` has nothing but its formula.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from msc.poly.derivative import number
from msc.poly.operators import function
from msc.poly.scalar import Scalar, apply, register


def _root(x: Scalar) -> Scalar:
    """By a logarithm; 0 at 0."""
    size = apply("exp", apply("div", apply("log", apply("abs", x)), number(3, x)))
    return apply("select", apply("lt", x, number(0, x)), apply("neg", size), size)


def _bump(x: Scalar) -> Scalar:
    return apply("exp", apply("neg", apply("mul", x, x)))


def _bump_slope(x: Scalar, y: Scalar) -> Scalar:
    return apply("mul", apply("mul", number(-2, x), x), y)


def _root_slope(x: Scalar, y: Scalar) -> Scalar:
    return apply("div", number(1 / 3, x), apply("mul", y, y))


register(
    function("cbrt", _root_slope, "exponential", "The cube root.", unbounded=True, formula=_root),
    function("bump", _bump_slope, "exponential", "e^-x^2.", numpy="", mlir="", c="", formula=_bump),
)

import numpy as np  # noqa: E402 (the operators come first)

import msc  # noqa: E402
from msc.codegen.c.vector_math import registry  # noqa: E402
from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction  # noqa: E402
from msc.exporters.onnx import export_model  # noqa: E402
from msc.frontend.dispatch import apply as applied  # noqa: E402
from msc.interp import evaluate  # noqa: E402
from tests.unit.compiled.programs import compiled, generated, parsed, program_text  # noqa: E402
from tests.unit.simulated import compared  # noqa: E402

_TEXT = """
MSC_INLINE f32x@ msc_cbrt_f32x@(f32x@ x)
{
    return msc_withsign_f32x@(msc_exp_f32x@(msc_log_f32x@(msc_abs_f32x@(x)) * 0.33333334f), x);
}
"""
registry.VECTOR_FUNCTIONS["cbrt"] = VectorFunction(
    MathTemplate(_TEXT, ("abs", "withsign", "exp", "log")), ErrorBound(8)
)


def _summed(name: str, t: Any) -> Any:
    return applied(name, t).sum()


def check(folder: Path) -> None:
    """Raises AssertionError where a level has not what NumPy has."""
    x = np.array([[0.25, 1.5, -2.0, 8.0, 0.001, -27.0, 3.0, 100.0] * 8] * 4, np.float32)
    wanted = {"cbrt": np.cbrt(x), "bump": np.exp(-x * x)}
    slopes = {"cbrt": 1 / (3 * np.cbrt(x) ** 2), "bump": -2 * x * wanted["bump"]}
    for name in ("cbrt", "bump"):
        text = program_text([(f"ms.{name} %0", "4x64xf32")])
        module = parsed(text)
        np.testing.assert_allclose(evaluate(module, [x], {})[0], wanted[name], rtol=1e-5, atol=1e-30)
        np.testing.assert_allclose(compiled(text, folder).results(x)[0], wanted[name], rtol=1e-5, atol=1e-30)
        model = export_model(module, {}, "msc").SerializeToString()
        session: Any = import_module("onnxruntime").InferenceSession(model, providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(
            session.run(None, {session.get_inputs()[0].name: x})[0], wanted[name], rtol=1e-5, atol=1e-30
        )
        gradient = msc.grad(partial(_summed, name))(msc.Tensor(x))
        np.testing.assert_allclose(gradient.asnumpy(), slopes[name], rtol=1e-5, atol=1e-30)
        path = folder / f"{name}.mir"
        path.write_text(text, "utf-8")
        both = compared(path, "ascend910b1", lambda rng, shape: rng.uniform(0.5, 2, shape).astype(np.float32))
        np.testing.assert_allclose(both.found[0], both.expected[0], rtol=1e-4)
    assert "msc_cbrt_f32x" in generated(program_text([("ms.cbrt %0", "4x64xf32")]), folder)[0].source


if __name__ == "__main__":
    check(Path(sys.argv[1]))
    print("as NumPy says")
