"""The table of docs/evidence/ascend-simulator.md: published figures of instructions, and what the simulator gives.

python -m benchmarks.ascend.instructions            prints the table
python -m benchmarks.ascend.instructions --write    writes it into docs/evidence/ascend-simulator.md
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ascend import micro_programs as micro
from benchmarks.ascend.micro_programs import Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "evidence" / "ascend-simulator.md"
BEGIN, END = "<!-- instructions: begin -->", "<!-- instructions: end -->"
_B1, _B3, _PR = "ascend910b1", "ascend910b3", "ascend950pr"


def cube_rows() -> Iterator[Row]:
    """Mmad."""
    for k, published in ((16, 25), (208, 36), (2048, 151)):
        yield Row(f"Mmad f16 16x16x{k}, alone", _B3, published, micro.mad(_B3, 16, k, 16), "3.3")
    for machine, gap in ((_B1, 2.0), (_PR, 0.3)):
        one, many = (micro.mad(machine, 128, 64, 256, times) for times in (1, 101))
        yield Row("Mmad f16 128x64x256, back to back", machine, 512 + gap, (many - one) / 100, "3.3")
    for dtype, k, steps in (("f16", 64, 64), ("i8", 64, 32), ("f32", 64, 256)):
        slope = micro.mad(_B1, 64, 2 * k, 64, 1, dtype) - micro.mad(_B1, 64, k, 64, 1, dtype)
        yield Row(f"Mmad {dtype} 64x64x64, without its constant", _B1, steps, slope, "3.2")
    for base, published in (((64, 64, 64), 125.0), ((128, 256, 64), 575.0)):
        yield Row(f"Mmad f16 {base}, after its loads", _B1, published, micro.ladder_step(_B1, base, "mac"), "3.4")
    yield Row("Mmad f16 (64, 64, 64), after its loads", _PR, 156, micro.ladder_step(_PR, (64, 64, 64), "mac"), "3.4")


def load_rows() -> Iterator[Row]:
    """L1 to L0 and to the tables."""
    for machine, bandwidths, constant in ((_B1, (256, 128), 28), (_PR, (256, 256), 30)):
        for to, bandwidth in zip(("ca", "cb"), bandwidths, strict=True):
            for fractals in (16, 64):
                expected = fractals * 512 / bandwidth + constant
                yield Row(
                    f"Load2D {fractals * 512} B to {to}", machine, expected, micro.load2d(machine, to, fractals), "3.2"
                )
    for to, bandwidth in (("ca", 256), ("cb", 128)):
        yield Row(f"Load2D turned, 8192 B to {to}", _B1, 8192 / bandwidth + 28, micro.load2d(_B1, to, 16, 1), "3.2")
    yield Row("loads of 8 KB to ca and 8 KB to cb", _B1, 143.0, micro.load_pair(_B1, 16, 16), "3.4")
    yield Row("loads of 16 KB to ca and 32 KB to cb", _B1, 367.0, micro.load_pair(_B1, 32, 64), "3.4")
    yield Row("loads of 8 KB to ca and 8 KB to cb", _PR, 91.0, micro.load_pair(_PR, 16, 16), "3.4")
    for stride in (1, 2, 4, 8, 3):
        for rows in (1, 3, 7):
            for to, extra, full, least in (("ca", 0, 256.0, 32.0), ("cb", 2, 128.0, 512 / 18)):
                denominator = rows + 2 + extra if stride == 1 else 2 * stride + extra + (rows if rows > 1 else 0)
                bandwidth = full if (stride, rows) == (1, 1) else float(512 // denominator)
                bandwidth = max(least, bandwidth) if stride in (1, 2, 4, 8) else least
                expected = micro.load3d_bytes(rows) / bandwidth + 50
                what = f"Load3D to {to}, stride {stride}, {rows} rows"
                yield Row(what, _B1, expected, micro.load3d(_B1, to, stride, rows), "3.2")
    for to in ("bt", "fb"):
        yield Row(f"512 B from L1 to {to}", _B1, 512 / 32 + 20, micro.table_load(_B1, to), "3.2")
    for dtype, bandwidth in (("f16", 128), ("i8", 64)):
        size = 2 if dtype == "f16" else 1
        expected = 64 * 64 * size / bandwidth + 20
        yield Row(f"Fixpipe 64x64 to L1 as {dtype}", _B1, expected, micro.fixpipe_to_l1(_B1, dtype, 64, 64), "3.2")


RATES: dict[str, tuple[float, float]] = {
    **dict.fromkeys(
        ("vadd", "vsub", "vmul", "vmax", "vmin", "vabs", "vrelu", "vrec", "vrsqrt", "vadds", "vmuls", "vmaxs", "vmins",
         "vlrelu", "vaxpy", "vaddrelu", "vmadd", "vector_dup", "vcpadd"),
        (128, 64),
    ),
    **dict.fromkeys(("vexp", "vln", "vsqrt", "vdiv"), (32, 32)),
    "vmla": (64, 32),
    **dict.fromkeys(("vcadd", "vcmax", "vcmin"), (128 / 7, 64 / 7)),
    "vcgadd": (128 / 7, 64),
}  # fmt: skip
"""Elements a cycle of f16 and f32, from 3.2."""


def vector_rows() -> Iterator[Row]:
    """The vector unit: 22 cycles, and the elements by their rate."""
    for name, rates in RATES.items():
        for dtype, lanes, rate in (("f16", 128, rates[0]), ("f32", 64, rates[1])):
            yield Row(
                f"{name} {dtype}, 64 repeats", _B1, 22 + 64 * lanes / rate, micro.vector(_B1, name, dtype, 64), "3.2"
            )
    ladder = ((32, (0, 8192, 16384), 86.0), (128, (0, 32768, 65536), 278.5), (127, (0, 32512, 65024), 149.6))
    for repeats, offsets, published in ladder:
        yield Row(f"vadd f16, {repeats} repeats, operands at {offsets}", _B1, published,
                  micro.vector(_B1, "vadd", "f16", repeats, offsets), "3.4")  # fmt: skip
    bench = (("no conflict", (0, 33024, 66048), 86.0), ("two sources in one bank group", (0, 32768, 65536), 150.0),
             ("source and result in one bank", (0, 16640, 33056), 135.0))  # fmt: skip
    for what, offsets, published in bench:
        yield Row(f"vadd f16, 64 repeats, {what}", _B1, published, micro.vector(_B1, "vadd", "f16", 64, offsets), "3.4")


def memory_rows() -> Iterator[Row]:
    """Moves through global memory, and the steps of the matmul ladder."""
    for machine in (_B1, _B3):
        for path, kb, published in micro.curves(machine):
            if machine == _B1 or path == "gm_ub":
                simulated = micro.first_move(machine, path, kb)
                yield Row(f"first move {path}, {kb:g} KB", machine, published, simulated, "3.3")
    yield Row("move of 128 B to UB, among many", _B1, 20.6, micro.small_copies(_B1), "3.4")
    for base, mte2, period in (((64, 64, 64), 513.87, 669.87), ((128, 256, 64), 1380.48, 1760.54)):
        yield Row(f"MTE2 of a step of {base}", _B1, mte2, micro.ladder_step(_B1, base, "mte2"), "3.4")
        yield Row(f"a whole step of {base}", _B1, period, micro.ladder_step(_B1, base, None), "3.4")
    for machine, scalar in ((_B1, 448.9), (_PR, 459.0)):
        yield Row("scalar work of a step", machine, scalar, micro.ladder_step(machine, (64, 64, 64), "scalar"), "3.4")


def rows() -> list[Row]:
    """The whole table."""
    return [*cube_rows(), *load_rows(), *vector_rows(), *memory_rows()]


def markdown(table: list[Row]) -> str:
    """The table as it stands in the document."""
    lines = ["| what | machine | published | simulated | difference | section |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {r.what} | {r.machine} | {r.published:.1f} | {r.simulated:.1f} | {r.difference:+.1f} | {r.source} |"
        for r in table
    ]
    worst = max(table, key=lambda r: abs(r.difference))
    within = sum(round(abs(r.difference), 6) <= 1.0 for r in table)
    lines += [
        "",
        f"{within} of {len(table)} within 1 cycle; the largest difference is {worst.difference:+.1f} ({worst.what}).",
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table, or write it into the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write it into docs/evidence/ascend-simulator.md")
    text = markdown(rows())
    if not parser.parse_args().write:
        print(text)
        return
    document = DOCUMENT.read_text(encoding="utf-8")
    before, rest = document.split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
