"""Vector math as C text: exp, log, tanh, erf, … on GCC/Clang vector types, inline, with stated errors.

``definitions`` gives the text, ``supported`` and ``error_bound`` say what there is. f32 functions are polynomials on
whole vectors; f64 and rare f32 ones call libm lane by lane. The scalar form of a function equals any lane of its vector
forms bit for bit.
"""

from __future__ import annotations

from msc.codegen.c.vector_math.registry import definitions, error_bound, is_vectorised, supported
from msc.codegen.c.vector_math.template import ErrorBound

__all__ = ["ErrorBound", "definitions", "error_bound", "is_vectorised", "supported"]
