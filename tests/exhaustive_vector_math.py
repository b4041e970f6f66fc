"""Measure the error of the generated f32 vector math over all 2^32 arguments.

    python tests/exhaustive_vector_math.py exp log tanh        # these functions; all one-argument ones by default
    python tests/exhaustive_vector_math.py exp --step 1009     # every 1009th argument
    python tests/exhaustive_vector_math.py exp --cflags="-O2 -mavx2"

`python -m tests.targets --suites "vector maths"` measures them on other machines.

The reference is the system's double libm. Prints the largest error in units in the last place and where it occurs, and
fails when a stated bound, the class of a result (NaN, infinity) or the sign of a zero is wrong. About two minutes each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msc.codegen.c.vector_math import definitions, error_bound
from msc.codegen.c.vector_math.registry import VECTOR_FUNCTIONS

ONE_ARGUMENT = [name for name, function in VECTOR_FUNCTIONS.items() if function.arity == 1]

_REFERENCES = {
    "sigmoid": "(x < 0 ? exp(x) : 1.0) / (1.0 + exp(-fabs(x)))",
    "softplus": "(x > 0 ? x : 0.0) + log1p(exp(-fabs(x)))",
    "rsqrt": "1.0 / sqrt(x)",
}

_HARNESS = """
#include <stdio.h>
#include <stdlib.h>

/* Units in the last place of f32 between y and the exact value; an infinite y counts as 2^128. */
static double error(float y, double exact)
{
    int exponent;
    if (isnan(exact) || isnan(y))
        return isnan(exact) && isnan(y) ? 0.0 : HUGE_VAL;
    if (exact == 0.0 || isinf(exact))
        return (double)y == exact && !signbit(y) == !signbit(exact) ? 0.0 : HUGE_VAL;
    frexp(exact, &exponent);
    const double ulp = ldexp(1.0, exponent - 24 < -149 ? -149 : exponent > 128 ? 104 : exponent - 24);
    const double limit = fabs(exact) > 0x1p128 ? copysign(0x1p128, exact) : exact;
    return fabs((isinf(y) ? copysign(0x1p128, y) : (double)y) - limit) / ulp;
}

int main(int argc, char **argv)
{
    const uint64_t step = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    double worst = 0.0;
    float where = 0.0f;
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += LANES * step) {
        f32xLANES v;
        for (int lane = 0; lane < LANES; ++lane) {
            const uint32_t bits = (uint32_t)(first + (uint64_t)lane * step);
            float x;
            memcpy(&x, &bits, sizeof x);
            v[lane] = x;
        }
        const f32xLANES y = msc_FUNCTION_f32xLANES(v);
        for (int lane = 0; lane < LANES; ++lane) {
            const double x = v[lane];
            const double e = error(y[lane], REFERENCE);
            if (e > worst) {
                worst = e;
                where = v[lane];
            }
        }
    }
    printf("%.4f %a\\n", worst, where);
    return 0;
}
"""


@dataclass(frozen=True)
class Build:
    """How a program is compiled, of vectors of how many lanes, and the command that runs it where it needs one."""

    compiler: Sequence[str] = ("gcc",)
    flags: Sequence[str] = ()
    lanes: int = 16
    emulator: Sequence[str] = ()


def measure(name: str, step: int, build: Build, folder: Path) -> tuple[float, str]:
    """The largest error of the function in ULP, and the argument that gives it."""
    reference = _REFERENCES.get(name, f"{name}(x)")
    harness = _HARNESS.replace("FUNCTION", name).replace("REFERENCE", reference).replace("LANES", str(build.lanes))
    source, program = folder / f"{name}.c", folder / name
    function = definitions([(name, "f32", build.lanes)])
    source.write_text("#include <math.h>\n#include <string.h>\n" + function + harness)
    subprocess.run([*build.compiler, "-std=c11", *build.flags, str(source), "-o", str(program), "-lm"], check=True)
    command = [*build.emulator, str(program), str(step)]
    worst, where = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(worst), where


def main() -> int:
    """Measure the functions named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=ONE_ARGUMENT, metavar="FUNCTION")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--cflags", default="-O2 -march=native -ffp-contract=fast")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in ONE_ARGUMENT]:
        parser.error(f"not a function of one argument: {', '.join(unknown)}")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names:
            worst, where = measure(name, arguments.step, Build(flags=arguments.cflags.split()), Path(folder))
            bound = error_bound(name, "f32").ulp
            failed |= worst > bound
            print(f"{name:10} {worst:.4f} ULP at {where} (stated: {bound})", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
