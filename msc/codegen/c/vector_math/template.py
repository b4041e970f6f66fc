"""C text templates of vector functions: what one is, and how it is instantiated.

A template is plain C in which ``@`` stands for the lane count and ``@h`` for half of it, so ``f32x@`` becomes
``f32x16`` and ``f64x@h`` becomes ``f64x8``; ``@low`` and ``@high`` are the lane indices of the two halves. Only vectors
are written by hand: the scalar form is lane 0 of the four-lane form, which makes a loop tail agree bit for bit with its
main loop whatever the compiler contracts.

Two rules keep that agreement when calls are inlined under ``-ffp-contract=fast``. No sum adds two products, which
leaves the compiler no choice of which one to fuse. And the first thing that happens to an argument and the last thing
that happens to a result is nothing that an FMA could swallow: a select, a bit operation, a division, a sum of two sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

VECTOR_LANES = (4, 8, 16, 32, 64)
"""Lane counts that f32 templates may be instantiated for."""


@dataclass(frozen=True)
class ErrorBound:
    """How far a result may be from the exact one: ``ulp`` units in the last place or ``absolute``, the larger."""

    ulp: float
    absolute: float = 0.0


@dataclass(frozen=True)
class MathTemplate:
    """C text of one vector function (or typedef group), the templates it builds on, and the system headers it needs."""

    text: str
    requires: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()

    def instantiate(self, lanes: int) -> str:
        """The C text for ``lanes`` lanes."""
        low = ", ".join(str(lane) for lane in range(lanes // 2))
        high = ", ".join(str(lane) for lane in range(lanes // 2, lanes))
        text = self.text.strip("\n").replace("@low", low).replace("@high", high)
        return text.replace("@h", str(lanes // 2)).replace("@", str(lanes)) + "\n"


@dataclass(frozen=True)
class VectorFunction:
    """A function that generated code may call: its template, arity and stated error."""

    template: MathTemplate
    bound: ErrorBound
    arity: int = 1


def horner(result: str, variable: str, coefficients: Sequence[float], suffix: str = "f", kind: str = "f32x@") -> str:
    """C statements that declare ``result``, the polynomial in ``variable``; coefficients from the constant term up."""
    *rest, second, last = (literal(c, suffix) for c in coefficients)
    lines = [f"    {kind} {result} = {variable} * {last} + {second};"]
    lines += [f"    {result} = {result} * {variable} + {c};" for c in reversed(rest)]
    return "\n".join(lines)


def literal(value: float, suffix: str = "f") -> str:
    """A C literal; the shortest decimal that reads back as the same float or double."""
    return f"{value!r}{suffix}"


def scalar_form(name: str, arity: int) -> str:
    """The scalar function: lane 0 of the four-lane one.

    The other lanes are zero, not copies: GCC turns arithmetic on a splat into scalar arithmetic piecemeal, which
    changes what it contracts.
    """
    arguments = ("x", "y")[:arity]
    parameters = ", ".join(f"float {a}" for a in arguments)
    vectors = ", ".join(f"(f32x4){{{a}}}" for a in arguments)
    return f"MSC_INLINE float msc_{name}_f32({parameters})\n{{\n    return msc_{name}_f32x4({vectors})[0];\n}}\n"
