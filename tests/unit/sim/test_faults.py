"""Everything that a core cannot do is told of at the operation that did it."""

from collections.abc import Sequence

import numpy as np
import pytest

from msc.codegen.davinci.simulate import SimulationOptions, check_kernel, simulate_kernel
from msc.driver.simulation.kernels import parse_kernels
from msc.support.diagnostics import MscError

HEAD = "davinci.kernel @k {kind} 1 (%x: !davinci.buffer<gm, f16, 4096>, %y: !davinci.buffer<gm, f16, 4096>) {{\n"
UB = """  %a = davinci.alloc at 0 : !davinci.buffer<ub, f16, 4096>
  %b = davinci.alloc at 8192 : !davinci.buffer<ub, f16, 4096>
"""
LOAD = "  davinci.copy_gm_to_ubuf %a[0], %x[0] {bursts = 1, length = 256}\n"
STORE = "  davinci.copy_ubuf_to_gm %y[0], %a[0] {bursts = 1, length = 256}\n"


def failing(lines: Sequence[str], kind: str = "vector") -> str:
    text = HEAD.format(kind=kind) + UB + "".join(lines) + "}\n"
    [kernel] = parse_kernels(text, "k.dv.mir")
    x, y = np.ones(4096, np.float16), np.zeros(4096, np.float16)
    with pytest.raises(MscError) as caught:
        simulate_kernel(kernel, SimulationOptions(functional=True), [x, y], [1], {"k.dv.mir": text})
    return str(caught.value)


def test_out_of_bounds() -> None:
    told = failing(["  davinci.copy_gm_to_ubuf %a[0], %x[16] {bursts = 1, length = 256}\n"])
    assert "MSC1011" in told
    assert "k.dv.mir:4:3" in told
    assert "reads bytes 32 to 8224 of GM, which has 8192" in told


def test_misaligned() -> None:
    assert "MSC1012" in failing(["  davinci.copy_gm_to_ubuf %a[1], %x[0] {bursts = 1, length = 2}\n"])


def test_uninitialised() -> None:
    assert "MSC1013" in failing([STORE])


def test_illegal_parameter() -> None:
    loop = "  loop.for %i = 256 to 257 {\n    davinci.vector_dup %a[0], 1.0 {repeat = %i}\n  }\n"
    assert "repeat is 256, outside 0 to 255" in failing([loop])
    loop = "  loop.for %i = 8 to 9 {\n    davinci.set_flag V -> MTE2, %i\n  }\n"
    assert "MSC1014" in failing([loop])


def test_cube_types() -> None:
    cube = """  %p = davinci.alloc at 0 : !davinci.buffer<ca, f16, 256>
  %q = davinci.alloc at 0 : !davinci.buffer<cb, bf16, 256>
  %r = davinci.alloc at 0 : !davinci.buffer<cc, f32, 256>
  davinci.mad %r[0], %p[0], %q[0] {m = 16, k = 16, n = 16}
"""
    assert "the cube multiplies" in failing([cube], "cube")


def test_deadlock() -> None:
    assert "MSC1015" in failing(["  davinci.wait_flag MTE2 -> V, 0\n"])
    assert "the scalar unit waits" in failing(["  davinci.wait_flag V -> S, 0\n"])
    assert "MSC1015" in failing(["  davinci.wait_flag_dev mode 1, flag 0\n"])


def test_unpaired_and_doubly_set_flags() -> None:
    one = "  davinci.set_flag MTE2 -> V, 0\n"
    assert "nothing waits for it" in failing([one])
    assert "a second time" in failing([one, one])


def races(lines: Sequence[str]) -> str:
    text = HEAD.format(kind="vector") + UB + "".join(lines) + "}\n"
    [kernel] = parse_kernels(text, "k.dv.mir")
    with pytest.raises(MscError) as caught:
        check_kernel(kernel, {"k.dv.mir": text})
    return str(caught.value)


def test_race_between_pipes() -> None:
    told = races([LOAD, STORE])
    assert "MSC1017" in told
    assert "k.dv.mir:5:3" in told
    assert "the other one is davinci.copy_gm_to_ubuf at k.dv.mir:4:3" in told


def test_race_within_the_vector_unit() -> None:
    double = "  davinci.vadd %b[0], %b[0], %b[0] {repeat = 32}\n"
    fill = "  davinci.vector_dup %b[0], 1.0 {repeat = 32}\n"
    assert "MSC1017" in races([fill, double])
    text = HEAD.format(kind="vector") + UB + fill + "  davinci.pipe_barrier V\n" + double + "}\n"
    check_kernel(parse_kernels(text, "k")[0])


def test_a_flag_that_only_time_orders() -> None:
    """Two settings that happen to be apart in time: the second one may come before the wait for the first."""
    lines = [
        "  davinci.set_flag MTE2 -> V, 0\n",
        "  davinci.wait_flag MTE2 -> V, 0\n",
        "  davinci.set_flag MTE2 -> V, 0\n",
        "  davinci.wait_flag MTE2 -> V, 0\n",
    ]
    assert "MSC1016" in races(lines)


def test_a_file_without_a_kernel() -> None:
    with pytest.raises(MscError, match="MSC1020"):
        parse_kernels("builtin.module {}", "k.dv.mir")


def test_the_fixpipe_scales_integers_to_halves_and_sums_to_bytes() -> None:
    """Sums of f32 become f16 without a scale."""
    told = failing([
        "  %c = davinci.alloc at 0 : !davinci.buffer<cc, f32, 256>\n",
        "  davinci.copy_matrix_cc_to_gm_quant %y[0], %c[0], 0.5 {n = 16, m = 16, dst_stride = 16, src_stride = 16}\n",
    ], "cube")  # fmt: skip
    assert "MSC1014" in told
    assert "the Fixpipe scales i32 to f16, and i32 or f32 to bytes" in told
