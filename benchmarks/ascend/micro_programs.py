"""Small programs, each of which measures one figure of an instruction on the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msc.backends.simulation.case_files import library_schedule
from msc.codegen.davinci.simulate import SimulationOptions, simulate_kernel
from msc.dialects.davinci import DavinciKernelOp
from msc.lowering.ascend.builder import Expr, KernelBuilder
from msc.lowering.ascend.matmul import matmul_kernel
from msc.schedule.cube.products import MatmulShape
from msc.sim.machine import L2State
from msc.sim.result import SimulationResult
from msc.targets.davinci import davinci_target
from msc.targets.davinci_isa import INSTRUCTIONS, Space

_SIZES = {"f16": 2, "f32": 4, "i8": 1, "i32": 4, "bf16": 2}


@dataclass(frozen=True)
class Row:
    """One line of the table: what is measured, on which machine, what is published, what the simulator says."""

    what: str
    machine: str
    published: float
    simulated: float
    source: str

    @property
    def difference(self) -> float:
        """Cycles that the simulator says more."""
        return self.simulated - self.published


def run(kernel: DavinciKernelOp, warm: bool = True) -> SimulationResult:
    """Timing alone."""
    return simulate_kernel(kernel, SimulationOptions(l2=L2State(warm)))


def program(
    machine: str, kind: str, write: Callable[[KernelBuilder], None], arguments: list[tuple[str, int]] | None = None
) -> SimulationResult:
    """Run what `write` writes on one core."""
    builder = KernelBuilder("micro", davinci_target(machine), kind, 1, arguments or [])
    write(builder)
    return run(builder.finish())


def mad(machine: str, m: int, k: int, n: int, times: int = 1, dtype: str = "f16") -> float:
    """Busy cycles of Mmads one after the other."""
    sums = "i32" if dtype == "i8" else "f32"

    def write(b: KernelBuilder) -> None:
        a, w = b.alloc(Space.ca, dtype, 65536 // _SIZES[dtype]), b.alloc(Space.cb, dtype, 65536 // _SIZES[dtype])
        c = b.alloc(Space.cc, sums, 32768)
        with b.loop(0, times):
            b.emit("mad", (c, 0), (a, 0), (w, 0), m=m, k=k, n=n)

    return program(machine, "cube", write).busy("mac")


def load2d(machine: str, to: str, fractals: int, transpose: int = 0) -> float:
    """Busy cycles of one Load2D."""

    def write(b: KernelBuilder) -> None:
        l1, l0 = b.alloc(Space.cbuf, "f16", 32768), b.alloc(Space[to], "f16", 32768)
        b.emit(f"load_cbuf_to_{to}", (l0, 0), (l1, 0), repeat=fractals, transpose=transpose)

    return program(machine, "cube", write).busy("mte1")


def load_pair(machine: str, a_fractals: int, b_fractals: int) -> float:
    """Busy cycles of a load of A and one of B behind it."""

    def write(b: KernelBuilder) -> None:
        l1 = b.alloc(Space.cbuf, "f16", 65536)
        l0a, l0b = b.alloc(Space.ca, "f16", 32768), b.alloc(Space.cb, "f16", 32768)
        b.emit("load_cbuf_to_ca", (l0a, 0), (l1, 0), repeat=a_fractals)
        b.emit("load_cbuf_to_cb", (l0b, 0), (l1, 0), repeat=b_fractals)

    return program(machine, "cube", write).busy("mte1")


def load3d(machine: str, to: str, stride: int, rows: int) -> float:
    """Busy cycles of one Load3D of 16 KB with `rows` kernel rows, of an image with enough windows by its border."""

    def write(b: KernelBuilder) -> None:
        l1, l0 = b.alloc(Space.cbuf, "f16", 131072), b.alloc(Space[to], "f16", 32768)
        b.emit(
            f"img2colv2_cbuf_to_{to}", (l0, 0), (l1, 0), h=64, w=64, c=16, pad_right=255, pad_bottom=255,
            stride_w=stride, stride_h=stride, filter_h=rows, k_extension=16 * rows,
            m_extension=8192 // (16 * rows) // 16 * 16,
        )  # fmt: skip

    return program(machine, "cube", write).busy("mte1")


def load3d_bytes(rows: int) -> int:
    """The bytes that `load3d` writes."""
    return 8192 // (16 * rows) // 16 * 16 * 16 * rows * 2


def table_load(machine: str, to: str) -> float:
    """Busy cycles of 512 bytes from L1 to a table."""

    def write(b: KernelBuilder) -> None:
        l1, table = b.alloc(Space.cbuf, "f32", 256), b.alloc(Space[to], "f32", 128)
        b.emit("copy_cbuf_to_bt" if to == "bt" else "copy_cbuf_to_fbuf", (table, 0), (l1, 0), length=16)

    return program(machine, "cube", write).busy("mte1" if to == "bt" else "fixpipe")


def fixpipe_to_l1(machine: str, dtype: str, m: int, n: int) -> float:
    """Busy cycles of a Fixpipe to L1."""

    def write(b: KernelBuilder) -> None:
        cc = b.alloc(Space.cc, "i32" if dtype == "i8" else "f32", m * n)
        l1 = b.alloc(Space.cbuf, dtype, m * n)
        b.emit("copy_matrix_cc_to_cbuf", (l1, 0), (cc, 0), n=n, m=m, dst_stride=m, src_stride=m, nd=1)

    return program(machine, "cube", write).busy("fixpipe")


def vector(machine: str, name: str, dtype: str, repeats: int, offsets: tuple[int, ...] = (0, 33024, 66048)) -> float:
    """Busy cycles of one vector instruction; `offsets` are the bytes at which the operands lie, the result last."""
    row = INSTRUCTIONS[name]

    def write(b: KernelBuilder) -> None:
        ub = b.alloc(Space.ub, dtype, 190000 // _SIZES[dtype] // 32 * 32)
        places: list[Expr] = [offset // _SIZES[dtype] for offset in offsets]
        sources = places[: len(row.spaces) - 1]
        operands = [(ub, at) for at in (places[-1], *sources)]
        real = 1.0 if any(p.real for p in row.parameters) else None
        b.emit(name, *operands, scalar=real, repeat=repeats)

    return program(machine, "vector", write).busy("vec")


def first_move(machine: str, path: str, kb: float) -> float:
    """Busy cycles of the first move of a program on a path."""
    elements = int(kb * 512)
    pipe, kind = {"ub_gm": ("mte3", "vector"), "cc_gm": ("fixpipe", "cube"), "gm_ub": ("mte2", "vector")}.get(
        path, ("mte2", "cube")
    )

    def write(b: KernelBuilder) -> None:
        x = b.arguments[0]
        match path:
            case "gm_cbuf":
                b.emit(
                    "copy_gm_to_cbuf",
                    (b.alloc(Space.cbuf, "f16", elements), 0),
                    (x, 0),
                    bursts=1,
                    length=elements // 16,
                )
            case "gm_ub":
                b.emit(
                    "copy_gm_to_ubuf", (b.alloc(Space.ub, "f16", elements), 0), (x, 0), bursts=1, length=elements // 16
                )
            case "gm_ca":
                b.emit("load_gm_to_ca", (b.alloc(Space.ca, "f16", elements), 0), (x, 0), repeat=elements // 256)
            case "gm_cbuf_nd2nz":
                to = b.alloc(Space.cbuf, "f16", elements)
                b.emit(
                    "copy_gm_to_cbuf_multi_nd2nz", (to, 0), (x, 0), n=elements // 256, d=256, src_stride=256,
                    dst_stride=elements // 256,
                )  # fmt: skip
            case "ub_gm":
                b.emit(
                    "copy_ubuf_to_gm", (x, 0), (b.alloc(Space.ub, "f16", elements), 0), bursts=1, length=elements // 16
                )
            case _:
                sums = int(kb * 256)
                n = 256 if sums >= 4096 else 16
                cc = b.alloc(Space.cc, "f32", sums)
                m = sums // n
                b.emit("copy_matrix_cc_to_gm", (x, 0), (cc, 0), n=n, m=m, dst_stride=n, src_stride=m)

    return program(machine, kind, write, [("f16", elements)]).busy(pipe)


def ladder_step(machine: str, base: tuple[int, int, int], pipe: str | None) -> float:
    """Cycles a step of K of the plain single-buffered matmul, in its steady state: of a pipe, or of the whole."""

    def cycles(steps: int) -> float:
        m, n, k = base
        shape = MatmulShape(m, n, k * steps, transpose_b=True)
        target = davinci_target(machine)
        schedule = library_schedule(shape, target, cores=1, base=base, depth_a1=1, depth_b1=1, big_packets=False)
        result = run(matmul_kernel(shape, schedule, target))
        return result.cycles if pipe is None else result.busy(pipe)

    return (cycles(192) - cycles(64)) / 128


def small_copies(machine: str) -> float:
    """Cycles of a move of 128 bytes to UB among many."""

    def write(b: KernelBuilder) -> None:
        ub = b.alloc(Space.ub, "f16", 64)
        with b.loop(0, 1000) as i:
            b.emit("copy_gm_to_ubuf_align", (ub, 0), (b.arguments[0], i * 64), bursts=1, length=128)

    return program(machine, "vector", write, [("f16", 64000)]).cycles / 1000


def curves(machine: str) -> Iterator[tuple[str, float, float]]:
    """Path, KB and cycles of every measured first move of a machine."""
    cold = davinci_target(machine).cold
    for path in ("gm_cbuf", "gm_ub", "gm_ca", "gm_cbuf_nd2nz", "ub_gm", "cc_gm"):
        for kb, cycles in getattr(cold, path):
            yield path, kb, cycles
