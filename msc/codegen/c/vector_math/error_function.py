"""erf for f32: where sixteen coefficients fit a register, x times one of sixteen polynomials; elsewhere two formulas.

These are an odd polynomial near zero and 1 - e^-R(|x|). Coefficients are fitted as those of the exponentials are.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.pieces import PIECEWISE, evaluation, tables
from msc.codegen.c.vector_math.template import ErrorBound, MathTemplate, VectorFunction, horner

_PIECES = (
    (
        1.1283792, 1.1053056, 1.0409998, 0.9482075, 0.8427008, 0.7383201, 0.6440701, 0.5638124,
        0.49766114, 0.44379434, 0.39983723, 0.36359978, 0.33332598, 0.30769098, 0.28571406, 0.26666665,
    ),
    (
        -1.4806176e-05, -0.18116303, -0.3244308, -0.40703255, -0.42759255, -0.40143973, -0.35009435, -0.29202238,
        -0.23849759, -0.1940677, -0.15906358, -0.1320049, -0.11106224, -0.09466516, -0.08163105, -0.07111083,
    ),
    (
        -0.37554234, -0.3353464, -0.22991498, -0.10021584, 0.012486158, 0.08462666, 0.11446559, 0.114095636,
        0.098579936, 0.07911162, 0.061444372, 0.047414716, 0.036876332, 0.029100709, 0.023324119, 0.018956633,
    ),
    (
        -0.0073478613, 0.104025036, 0.16594408, 0.16861734, 0.12565465, 0.06648333, 0.01651212, -0.013395311,
        -0.02501873, -0.02544682, -0.021234175, -0.01624799, -0.012038335, -0.00890181, -0.0066549066, -0.005056653,
    ),
    (
        0.14139143, 0.08846769, 0.032355405, -0.0247063, -0.056408443, -0.057635017, -0.040483333, -0.019763537,
        -0.004634963, 0.0027378332, 0.005185331, 0.004751044, 0.0039436305, 0.0025349979, 0.0015001292, 0.0016735484,
    ),
)  # fmt: skip
"""erf(a) / a in t = a - k / 4 for the nearest k = 0, ..., 15; relative error 2^-23.3."""

_NEAR = (0.12837915, -0.37612507, 0.11281976, -0.026773285, 0.00500416, -0.00060524617)
"""erf(a) / a - 1 in a^2 for a < 0.9; relative error of erf 2^-26.1."""

_FAR = (0.00016644652, 1.1277972, 0.63697606, 0.10411373, -0.022315264, 0.0030655134, -0.0001982235)
"""-log(1 - erf(a)) for 0.9 <= a <= 4; error of erf 2^-29.1."""


_ERF_TEXT = f"""
MSC_INLINE f32x@ msc_erf_f32x@(f32x@ x)
{{
    const f32x@ a = msc_abs_f32x@(x);
#ifdef __AVX512F__
{evaluation("erf", _PIECES, 0.25, 3.87)}
#else
    const f32x@ square = a * a;
{horner("near", "square", _NEAR)}
    near = a * near + a;
    const f32x@ bounded = msc_least_f32x@(4.0f, a);
{horner("far", "bounded", _FAR)}
    far = 1.0f - msc_exp_bounded_f32x@(-far);
    return msc_withsign_f32x@(msc_select_f32x@(a < 0.9f, near, far), x);
#endif
}}
"""

ERROR_FUNCTION_PARTS: Mapping[str, MathTemplate] = {"erf_pieces": tables("erf", _PIECES)}

ERROR_FUNCTION: Mapping[str, VectorFunction] = {
    "erf": VectorFunction(MathTemplate(_ERF_TEXT, ("erf_pieces", "exp_bounded", *PIECEWISE)), ErrorBound(4)),
}
