"""erf for f32: an odd polynomial near zero, 1 - e^-R(|x|) elsewhere.

Coefficients are fitted as those of the exponentials are.
"""

from __future__ import annotations

from collections.abc import Mapping

from msc.codegen.c.vector_math.template import ErrorBound, Template, VectorFunction, horner

_NEAR = (0.12837915, -0.37612507, 0.11281976, -0.026773285, 0.00500416, -0.00060524617)
"""erf(a) / a - 1 in a^2 for a < 0.9; relative error of erf 2^-26.1."""

_FAR = (0.00016644652, 1.1277972, 0.63697606, 0.10411373, -0.022315264, 0.0030655134, -0.0001982235)
"""-log(1 - erf(a)) for 0.9 <= a <= 4; error of erf 2^-29.1."""

_ERF_TEXT = f"""
MSC_INLINE f32x@ msc_erf_f32x@(f32x@ x)
{{
    const f32x@ a = msc_abs_f32x@(x);
    const f32x@ square = a * a;
{horner("near", "square", _NEAR)}
    near = a * near + a;
    const f32x@ bounded = msc_clamp_f32x@(a, 0.0f, 4.0f);
{horner("far", "bounded", _FAR)}
    far = 1.0f - msc_exp_bounded_f32x@(-far);
    return msc_withsign_f32x@(msc_select_f32x@(a < 0.9f, near, far), x);
}}
"""

ERROR_FUNCTION: Mapping[str, VectorFunction] = {
    "erf": VectorFunction(Template(_ERF_TEXT, ("exp_bounded", "clamp", "abs", "withsign")), ErrorBound(4)),
}
