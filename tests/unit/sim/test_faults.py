"""Everything that a core cannot do is told of at the operation that did it."""

from collections.abc import Sequence

import numpy as np
import pytest

from msc.backends.simulation.kernels import parse_kernels
from msc.codegen.davinci import race_check
from msc.codegen.davinci.simulate import SimulationOptions, check_kernel, simulate_kernel
from msc.lowering.ascend.builder import KernelBuilder
from msc.sim.machine import SimulatorMemoryError
from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target
from msc.targets.davinci_isa import Space

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


def test_windows_lie_in_the_padded_image() -> None:
    image = """  %p = davinci.alloc at 0 : !davinci.buffer<cbuf, f16, 4096>
  %q = davinci.alloc at 0 : !davinci.buffer<ca, f16, 4096>
  davinci.img2colv2_cbuf_to_ca %q[0], %p[0] {h = 4, w = 5, c = 16, MORE}
"""
    rows = "k_extension = 16, m_extension = 33"
    assert "m_start + m_extension is 33; the result has 20 pixels" in failing([image.replace("MORE", rows)], "cube")
    late = "filter_w = 2, k_extension = 16, m_extension = 16, k_start = 32"
    assert "k_start + k_extension is 48; channels and taps are 32" in failing([image.replace("MORE", late)], "cube")
    large = "filter_h = 5, k_extension = 16, m_extension = 16"
    assert "the filter is larger than the padded image" in failing([image.replace("MORE", large)], "cube")


def test_deadlock() -> None:
    assert "MSC1015" in failing(["  davinci.wait_flag MTE2 -> V, 0\n"])
    assert "the scalar unit waits" in failing(["  davinci.wait_flag V -> S, 0\n"])
    assert "0 of 1 have set it" in failing(["  davinci.wait_flag_dev mode 1, flag 0\n"])


def test_a_deadlock_names_all_that_waits() -> None:
    """V waits for MTE3, MTE3 for MTE2, which waits for V: none of them is the only cause."""
    told = failing([
        "  davinci.wait_flag MTE3 -> V, 1\n",
        "  davinci.set_flag V -> MTE2, 2\n",
        "  davinci.wait_flag MTE2 -> MTE3, 3\n",
        "  davinci.set_flag MTE3 -> V, 1\n",
        "  davinci.wait_flag V -> MTE2, 2\n",
        "  davinci.set_flag MTE2 -> MTE3, 3\n",
    ])  # fmt: skip
    for waiting in ("V waits for a flag of MTE3, id 1", "MTE3 waits for a flag of MTE2, id 3", "MTE2 waits for a flag"):
        assert told.count(waiting) == 1
    assert told.count("k.dv.mir:") == 3


def test_a_wait_takes_one_setting_of_each_core() -> None:
    """Two settings of one vector core are none of the other one."""
    text = """davinci.kernel @k mix 1 () {
  %s = davinci.sub_block
  davinci.section vector {
    loop.for %i = 0 to 2 - %s * 2 {
      davinci.ffts_cross_core_sync MTE3, mode 2, flag 0
    }
  }
  davinci.section cube {
    davinci.wait_flag_dev mode 2, flag 0
  }
}
"""
    with pytest.raises(MscError, match=r"MSC1015.*1 of 2 have set it"):
        check_kernel(parse_kernels(text, "k.dv.mir")[0])


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


@pytest.mark.parametrize("shift", [-256, -128, -16, 0, 16, 128, 256, 2048])
def test_repeats_of_one_instruction_overlap(shift: int) -> None:
    """A result a little behind its source: later repeats read what earlier ones write. Before it none does."""
    lines = [
        "  davinci.vector_dup %a[0], 1.0 {repeat = 32}\n  davinci.pipe_barrier V\n",
        f"  davinci.vadds %a[{512 + shift}], %a[512], 1.0 {{repeat = 8}}\n",
    ]
    text = HEAD.format(kind="vector") + UB + "".join(lines) + "}\n"
    if 0 < shift < 1024:
        assert "MSC1017" in races(lines)
    else:
        check_kernel(parse_kernels(text, "k.dv.mir")[0])


def test_a_kernel_consists_of_its_own_operations() -> None:
    for line in ("%c = arith.constant 5 : index", "davinci.kernel @j vector 1 () {}"):
        with pytest.raises(MscError, match=r"MSC1032.*is no operation of a davinci\.kernel"):
            parse_kernels(HEAD.format(kind="vector") + f"  {line}\n}}\n", "k.dv.mir")


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


def shared(lines: str, blocks: int = 3, kind: str = "vector") -> None:
    """Prove a kernel in which cores share x and y."""
    text = (
        HEAD.format(kind=kind).replace("vector 1", f"vector {blocks}")
        + UB
        + "  %g = davinci.block_idx\n"
        + lines
        + "}\n"
    )
    check_kernel(parse_kernels(text, "k.dv.mir")[0], {"k.dv.mir": text})


READ = "  davinci.copy_gm_to_ubuf %a[0], %x[FROM] {bursts = 1, length = LENGTH}\n"
ORDER = "  davinci.set_flag MTE2 -> MTE3, 0\n  davinci.wait_flag MTE2 -> MTE3, 0\n"
WRITE = "  davinci.copy_ubuf_to_gm %x[FROM], %a[0] {bursts = 1, length = LENGTH}\n"


def at(text: str, place: str, length: int) -> str:
    return text.replace("FROM", place).replace("LENGTH", str(length))


@pytest.mark.parametrize("writer", [0, 1, 2])
def test_no_core_writes_what_any_other_one_reads(writer: int) -> None:
    """Whichever core writes, and however many have read before."""
    only = (
        f"  loop.for %i = {writer} to %g + 1 {{\n  loop.for %j = %g to {writer + 1} {{\n{at(WRITE, '0', 8)}  }}\n  }}\n"
    )
    with pytest.raises(MscError, match=r"MSC1017.*race in GM"):
        shared(at(READ, "0", 8) + ORDER + only)


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_shifts_in_place_over_cores(shift: int) -> None:
    """Each core moves its part of x: by blocks beyond its part there is a race, within there is none."""
    lines = at(READ, f"%g * 512 + {256 + 16 * shift}", 16) + ORDER + at(WRITE, "%g * 512 + 256", 16)
    shared(lines)
    beyond = at(READ, f"%g * 256 + {256 + 256 * shift}", 16) + ORDER + at(WRITE, "%g * 256 + 256", 16)
    if shift:
        with pytest.raises(MscError, match="MSC1017"):
            shared(beyond)
    else:
        shared(beyond)


@pytest.mark.parametrize(("step", "races"), [(5, False), (4, True)])
def test_bytes_within_a_block_are_told_apart(step: int, races: bool) -> None:
    """Cores write five halves each: side by side, or over the last one of the core before."""
    fill = "  davinci.vector_dup %a[0], 1.0 {repeat = 1}\n" + ORDER.replace("MTE2", "V")
    store = f"  davinci.copy_ubuf_to_gm_align %x[%g * {step}], %a[0] {{bursts = 1, length = 10}}\n"
    if races:
        with pytest.raises(MscError, match=r"MSC1017.*writes what MTE3 writes"):
            shared(fill + store)
    else:
        shared(fill + store)


def test_all_races_are_told() -> None:
    told = races(
        [
            LOAD,
            STORE,
            "  davinci.vadd %b[0], %a[0], %a[0] {repeat = 32}\n",
            "  davinci.vadd %a[0], %b[0], %b[0] {repeat = 32}\n",
        ]
    )
    assert told.count("error[MSC1017]") >= 3


@pytest.mark.parametrize("body", ["", "    davinci.scalar_work {cycles = 1}\n"])
def test_what_does_not_end_is_stopped(body: str) -> None:
    text = HEAD.format(kind="vector") + "  loop.for %i = 0 to 1000000000000 {\n" + body + "  }\n}\n"
    [kernel] = parse_kernels(text, "k.dv.mir")
    with pytest.raises(MscError, match="MSC1030"):
        check_kernel(kernel, limit=10_000)
    with pytest.raises(MscError, match="MSC1030"):
        simulate_kernel(kernel, SimulationOptions(limit=10_000))


def test_without_memory_for_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise SimulatorMemoryError("for the simulated cores")

    monkeypatch.setattr(race_check, "simulate", none)
    text = HEAD.format(kind="vector") + "}\n"
    with pytest.raises(MscError, match="MSC1031"):
        check_kernel(parse_kernels(text, "k.dv.mir")[0])


def test_a_rule_is_told_at_the_operation_that_breaks_it() -> None:
    text = HEAD.format(kind="cube") + UB + LOAD + "}\n"
    with pytest.raises(MscError, match=r"(?s)MSC1032.*k\.dv\.mir:4:3"):
        parse_kernels(text, "k.dv.mir")


def test_kernels_that_nobody_verified_are_verified() -> None:
    """What makes operations in Python may make wrong ones: proof and simulation refuse them."""
    b = KernelBuilder("k", davinci_target("ascend910b1"), "cube", 1, [("f16", 64)])
    b.emit("copy_gm_to_ubuf", (b.alloc(Space.ub, "f16", 64), 0), (b.arguments[0], 0), bursts=1, length=4)
    kernel = b.finish()
    for run in (check_kernel, simulate_kernel):
        with pytest.raises(MscError, match="MSC1032"):
            run(kernel)
