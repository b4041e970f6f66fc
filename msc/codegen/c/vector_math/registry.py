"""Which functions exist, with what error, and the C text of a set of them in dependency order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msc.codegen.c.vector_math.error_function import ERROR_FUNCTION, ERROR_FUNCTION_PARTS
from msc.codegen.c.vector_math.exponential import EXPONENTIAL, EXPONENTIAL_PARTS
from msc.codegen.c.vector_math.libm import has_libm_form, lane_loop, libm_bound, libm_scalar, vector_type
from msc.codegen.c.vector_math.logarithm import LOGARITHM, LOGARITHM_PARTS
from msc.codegen.c.vector_math.power import POWER, POWER_PARTS
from msc.codegen.c.vector_math.primitives import PRIMITIVES
from msc.codegen.c.vector_math.rounding import ROUNDING
from msc.codegen.c.vector_math.template import VECTOR_LANES, ErrorBound, MathTemplate, VectorFunction, scalar_form
from msc.codegen.c.vector_math.trigonometric import TRIGONOMETRIC, TRIGONOMETRIC_PARTS

VECTOR_FUNCTIONS: dict[str, VectorFunction] = {
    **EXPONENTIAL, **LOGARITHM, **ERROR_FUNCTION, **TRIGONOMETRIC, **POWER, **ROUNDING,
}  # fmt: skip
"""The f32 functions that have a branch-free vector form, by name."""

_TEMPLATES: Mapping[str, MathTemplate] = {
    **PRIMITIVES, **EXPONENTIAL_PARTS, **ERROR_FUNCTION_PARTS, **LOGARITHM_PARTS, **TRIGONOMETRIC_PARTS, **POWER_PARTS,
}  # fmt: skip
"""What they build on."""

_LANES = (1, 2, *VECTOR_LANES)
_PROLOGUE = """/* Always inline: no vector is ever passed in a call, which is what -Wpsabi warns about. */
#ifndef MSC_INLINE
#define MSC_INLINE static inline __attribute__((always_inline, unused))
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
"""

Use = tuple[str, str, int]


def supported(name: str, dtype: str) -> bool:
    """Whether ``msc_<name>_<dtype>`` and its vector forms can be defined."""
    return is_vectorised(name, dtype) or has_libm_form(name, dtype)


def is_vectorised(name: str, dtype: str) -> bool:
    """Whether the vector form is more than a loop over libm calls."""
    return dtype == "f32" and name in VECTOR_FUNCTIONS


def error_bound(name: str, dtype: str) -> ErrorBound:
    """The stated error of the function. ValueError if it is not supported."""
    _require(name, dtype, 1)
    return VECTOR_FUNCTIONS[name].bound if is_vectorised(name, dtype) else libm_bound(name)


def definitions(uses: Iterable[Use]) -> str:
    """C text that defines ``msc_<name>_<dtype>x<lanes>`` (``msc_<name>_<dtype>`` for one lane) for every use.

    The text includes the headers and vector types it needs, defines each function once, and does not depend on the
    order of ``uses``. Lanes are a power of two up to 64. ValueError if a use is not supported.
    """
    emission = _Emission()
    for name, dtype, lanes in sorted(set(uses)):
        _require(name, dtype, lanes)
        emission.define(name, dtype, lanes)
    return emission.text()


def _require(name: str, dtype: str, lanes: int) -> None:
    if not supported(name, dtype) or lanes not in _LANES:
        raise ValueError(f"no C vector math for {name} on {dtype} in {lanes} lanes")


@dataclass
class _Emission:
    """The pieces emitted so far, in order, keyed so that each appears once."""

    pieces: dict[str, str] = field(default_factory=dict[str, str])
    headers: set[str] = field(default_factory=set[str])

    def define(self, name: str, dtype: str, lanes: int) -> None:
        """Add one function and what it needs."""
        if is_vectorised(name, dtype) and lanes in VECTOR_LANES:
            self._template(name, lanes)
            return
        self._scalar(name, dtype)
        if lanes > 1:
            self.pieces.setdefault(f"{dtype}x{lanes}", vector_type(dtype, lanes))
            self.pieces[f"{name}_{dtype}x{lanes}"] = lane_loop(name, dtype, lanes)

    def text(self) -> str:
        """Headers, then the pieces."""
        includes = "".join(f"#include <{header}>\n" for header in sorted(self.headers))
        return "\n".join(self._sections(includes)) if self.pieces else ""

    def _sections(self, includes: str) -> Iterator[str]:
        yield includes
        yield _PROLOGUE
        yield from self.pieces.values()

    def _template(self, name: str, lanes: int) -> None:
        function = VECTOR_FUNCTIONS.get(name)
        template = function.template if function is not None else _TEMPLATES[name]
        for required in template.requires:
            self._template(required, lanes)
        self.headers.update(template.headers)
        key = f"{name}x{lanes}" if "@" in template.text else name
        self.pieces.setdefault(key, template.instantiate(lanes))

    def _scalar(self, name: str, dtype: str) -> None:
        if is_vectorised(name, dtype):
            self._template(name, VECTOR_LANES[0])
            self.pieces.setdefault(f"{name}_{dtype}", scalar_form(name, VECTOR_FUNCTIONS[name].arity))
        else:
            self.headers.add("math.h")
            self.pieces.setdefault(f"{name}_{dtype}", libm_scalar(name, dtype))
