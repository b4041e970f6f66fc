"""Flags that generated C is built with, each a decision.

-std=c11: the generated text is C11 with GCC's vector types, which clang has too.
-O3: full unrolling, and vectorising of the scalar loops that the scheduler left; GCC's -O2 does neither enough.
-fno-tree-slp-vectorize: straight-line code is not searched for operations that make vectors. Kernels have their vectors
already, and in the long entry function of a deep network the search takes GCC a third of all its time.
-ffp-contract=fast: a*b+c becomes one fused multiply-add, one rounding instead of two. The one relaxation of arithmetic.
--param=avoid-fma-max-bits=0 (GCC): tuned for some processors, GCC multiplies and adds apart where a loop has a single
chain of sums, and fuses both where it has several; which of them a result is in, tiles decide, and threads these.
-fno-ipa-cp (GCC): of a kernel whose weights lie at known addresses, GCC 12 may count the places that it writes from
there. It then takes the kernel for one that writes nothing but constants, and drops the call.
-fno-math-errno: sqrt and friends need not set errno, which nothing reads. Values do not change, calls become
instructions.
-fno-trapping-math: nobody unmasks floating-point exceptions, so a value may be computed and not used. Values do not
change.
-Wno-psabi: GCC notes that vectors wider than the machine's are passed differently than once; they only pass between
functions of one file.
Never -ffast-math: it assumes away NaN, infinities and the order of sums.
"""

from __future__ import annotations

import sys

BUILD_FLAGS = (
    "-std=c11",
    "-O3",
    "-fno-tree-slp-vectorize",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)
"""For every compiler and target; `-march` comes from the target."""

FIRMWARE_FLAGS = (
    "-std=c99",
    "-O2",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffunction-sections",
    "-fdata-sections",
)
"""For microcontrollers, whose flash is small: register tiles are written out in C already, so that -O2 is enough."""

GCC_FLAGS = ("--param=avoid-fma-max-bits=0", "-fno-ipa-cp")
"""For GCC alone; others do not know it."""

LINK_FLAGS = () if sys.platform == "darwin" else ("-Wl,--build-id=none",)
"""Nothing asks for the hash of all bytes that linkers add, and of many weights it takes longer than linking."""

THREAD_FLAGS = ("-pthread",)
"""For programs of several threads."""

WARNING_FLAGS = ("-Wall", "-Wextra", "-Werror")
"""Generated C is clean under these; tests build with them."""

SANITIZER_FLAGS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
"""For builds that check every access; optimising instrumented code further only takes time."""
