"""Files of machines: all of msc's load, and mistakes in a user's are told of with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from msc.support.diagnostics import MscError
from msc.targets.abilities import Shape
from msc.targets.catalogue import machine_named, machine_names, shipped
from msc.targets.machine import Machine

CUBE = """
base = "x86-64-v3"

[unit.cube]
computes = "c[m, n] += a[m, k] * b[k, n]"
shape = { m = 16, n = 16, k = 16 }
a = { types = ["f16"], place = "PAD" }
b = { types = ["f16"], place = "PAD" }
c = { types = ["f32"], place = "SUMS" }
cycles = 1
latency = 20

[scratchpad.PAD]
bytes = 262_144
bytes_per_cycle = 128
latency = 30
align = 32
beside = "L2"

[scratchpad.SUMS]
bytes = 65_536
bytes_per_cycle = 128
latency = 30
align = 64
beside = "PAD"
"""


LANES = """
base = "x86-64-v4"
[unit.dot]
computes = "c[n] += a[n, k] * b[n, k]"
shape = { n = 16, k = 4 }
a = { types = ["i8"] }
b = { types = ["i8"] }
c = { types = ["i32"] }
cycles = 1
latency = 4
"""


def read(folder: Path, text: str) -> Machine:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return machine_named(str(path))


def test_every_file_is_a_machine() -> None:
    families = {"generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "neon", "rvv"}
    assert families | {"cascadelake", "znver4", "znver5"} <= set(shipped())
    for name, machine in shipped().items():
        assert machine.name == name
        assert machine.l1 <= machine.l2 <= machine.l3
        assert all(
            a.bytes_per_cycle >= b.bytes_per_cycle for a, b in zip(machine.levels, machine.levels[1:], strict=False)
        )
        assert all(a.latency < b.latency for a, b in zip(machine.levels, machine.levels[1:], strict=False))


def test_names_go_on_working() -> None:
    for name in ("generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "armv8-a", "armv8", "neon", "native"):
        assert name in machine_names()
        assert machine_named(name).caches
    assert machine_named("armv8-a") == machine_named("neon")


def test_a_file_changes_figures_of_its_base(tmp_path: Path) -> None:
    machine = read(tmp_path, 'base = "x86-64-v4"\n[memory.L2]\nbytes = 2_097_152\n')
    base = machine_named("x86-64-v4")
    assert machine.name == "mine"
    assert (machine.l1, machine.l2, machine.l3) == (base.l1, 2 << 20, base.l3)
    assert (machine.flags, machine.features, machine.ports) == (base.flags, base.features, base.ports)


def test_matrix_units_and_scratchpads(tmp_path: Path) -> None:
    machine = read(tmp_path, CUBE)
    (cube,) = (unit for unit in machine.units if unit.name == "cube")
    assert (cube.name, cube.shape) == ("cube", Shape(16, 16, 16))
    assert [operand.place for operand in cube.operands] == ["PAD", "PAD", "SUMS"]
    assert machine.scopes == ("PAD", "SUMS")
    assert [level.name for level in machine.levels] == ["L1", "L2", "L3", "DRAM"]


def test_a_file_leaves_out_tables_of_its_base(tmp_path: Path) -> None:
    machine = read(tmp_path, 'base = "generic"\nwithout = ["memory.L3"]')
    assert [level.name for level in machine.levels] == ["L1", "L2", "DRAM"]
    assert machine.l3 == machine.l2


def test_a_file_puts_a_level_in_front_of_memory(tmp_path: Path) -> None:
    levels = "[memory.L4]\nbytes = 33_554_432\n[memory.HBM]\n"
    rates = "bytes_per_cycle = 6\nlatency = 100\nline = 64\n"
    text = 'base = "generic"\nwithout = ["memory.DRAM"]\n' + levels.replace("]\n", f"]\n{rates}")
    assert [level.name for level in read(tmp_path, text).levels] == ["L1", "L2", "L3", "L4", "HBM"]


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "help_"),
    [
        ('base = "x86-64-v9"', 1, 1, "no machine 'x86-64-v9'", "did you mean 'x86-64-v4'?"),
        ('base = "generic"\nvecs = 1', 2, 1, "a machine has no 'vecs'", "did you mean"),
        ('base = "generic"\n[vectors]\nbits = 500', 3, 1, "power of two", ""),
        ('base = "generic"\n[vectors]\nbits = 4', 3, 1, "bits is 4; it is 8 to 2048", "bits of a register"),
        ('base = "generic"\n[vectors]\nregisters = 0', 3, 1, "registers is 0; it is 1 or more", ""),
        ('base = "generic"\n[vectors]\nunit = 7', 3, 1, "64 to the 128 bits of a register, not 7", ""),
        ('base = "znver4"\n[vectors]\nbits = 128', 2, 2, "128 bits of a register, not 256", ""),
        ('base = "generic"\n[latency]\nadd = 1e12', 3, 1, "it is 1 to 1000", "of an addition"),
        ('base = "generic"\n[memory.L1]\nbyts = 3', 3, 1, "[memory.L1] has no 'byts'", "did you mean 'bytes'?"),
        ('base = "generic"\n[memory.L1]\nbytes = -3', 3, 1, "bytes is -3; it is 0 or more", "capacity in bytes"),
        ('base = "generic"\n[memory.L1]\nbytes = 3.5', 3, 1, "bytes is a whole number, not 3.5", ""),
        ('base = "generic"\n[memory.L1]\nbytes = 100', 2, 2, "not a multiple of 8 ways of 64-byte lines", ""),
        ('base = "generic"\n[memory.L1]\nbytes = 8_388_608\n[memory.L2]\nways = 4', 4, 2, "L2 is smaller than L1", ""),
        ('base = "generic"\n[memory.DRAM]\nbytes = 4096', 3, 1, "no bytes, as it is without a limit", ""),
        ('base = "generic"\n[memory.L1]\nshared_by = "all"', 3, 1, 'is "core" or "machine"', ""),
        ('base = "generic"\nports = 2', 2, 1, "'ports' is a table", ""),
        ('base = "generic"\n[memory]\nL1 = 2', 3, 1, "'memory' is a table of tables", ""),
        ('base = "generic"\nflags = "-O2"', 2, 1, "each of which is a string", ""),
        ('base = "generic"\n[ports]\nload = nan', 3, 1, "load is nan", ""),
        ('base = "generic"\n[unit.cube]\nshape = { m = 16 }', 2, 2, "[unit.cube] has no computes", ""),
        ("cores = 1", 1, 1, "has no table 'memory'", 'base = "generic"'),
        ("x =", 1, 1, "not TOML", ""),
        (CUBE.replace('place = "PAD"', 'place = "BAD"'), 7, 1, "no scratchpad 'BAD'", "did you mean 'PAD'?"),
        (CUBE.replace("n = 16", "l = 16"), 6, 1, "[unit.cube.shape] has no 'l'", ""),
        (CUBE.replace("n = 16", "n = 0"), 6, 1, "n is 0; it is 1 or more", "columns"),
        (CUBE.replace('"f16"', '"f17"'), 7, 1, 'types is a list, each of which is "f16" or "bf16"', "element types"),
        (CUBE.replace('place = "PAD"', 'place = "L2"'), 7, 1, "no scratchpad 'L2'", "there are: PAD, SUMS"),
        (CUBE.replace(', place = "SUMS"', ""), 7, 1, "either all operands are in registers, or none", ""),
        (CUBE.replace("b[k, n]", "b[k, m]"), 5, 1, "a unit on PAD computes c[m, n] += a[m, k] * b[k, n]", ""),
        (CUBE.replace("+=", "="), 5, 1, "a unit on PAD computes", ""),
        (LANES.replace("[n, k] *", "[m, k] *"), 4, 1, "on register computes c[n] += a[n, k] * b[n, k]", ""),
        (LANES.replace("n = 16", "n = 12"), 5, 1, "n a power of two", ""),
        (LANES.replace("k = 4", "k = 2"), 5, 1, "so have k factors together", ""),
        (CUBE.replace('"L2"', '"SUMS"'), 18, 1, "no level of memory fills PAD", ""),
        (CUBE.replace('"L2"', '"L5"'), 18, 1, "no memory 'L5'", "there are: L1"),
        (CUBE.replace("align = 32", "align = 33"), 17, 1, "33 bytes are not a power of two", ""),
        (CUBE.replace("PAD", "L1"), 13, 2, "L1 is the name of a memory already", ""),
        (CUBE.replace("PAD", "stack"), 13, 2, "stack is the name of a memory already", ""),
        (CUBE.replace("PAD", "t0"), 13, 2, "t0 is the name of an array of a kernel already", ""),
        (CUBE.replace("unit.cube", 'unit."my unit"'), 4, 2, "'my unit': it consists of letters", ""),
        ('base = "generic"\nstack = 1000', 2, 1, "has no room for four times", ""),
        ('base = "generic"\npage = 5000', 2, 1, "5000 bytes are not a power of two", ""),
        ('base = "generic"\n[code]\noverlap = 7', 3, 1, "overlap is 7.0; it is 0 to 1", "share of loads"),
        ('base = "generic"\n[code]\nentry = inf', 3, 1, "entry is inf; it is finite", ""),
        ('base = "generic"\nwithout = ["memory.L4"]', 2, 1, "no table 'memory.L4'", "did you mean 'memory.L3'?"),
    ],
)
def test_mistakes_have_a_place(tmp_path: Path, text: str, line: int, column: int, message: str, help_: str) -> None:
    with pytest.raises(MscError) as caught:
        read(tmp_path, text)
    (diagnostic,) = caught.value.diagnostics
    place = diagnostic.location
    assert diagnostic.code == "MSC0511"
    assert message in diagnostic.message
    assert help_ in (diagnostic.help or "")
    assert place is not None
    assert (Path(place.file).name, place.line) == ("mine.toml", line)
    assert "TOML" in message or place.column == column


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(MscError, match="MSC0001"):
        machine_named("no-such-machine.toml")


def test_a_name_that_is_none() -> None:
    with pytest.raises(MscError, match=r"MSC0501(.|\n)*did you mean 'znver5'"):
        machine_named("znver55")


def test_equal_files_are_equal_machines(tmp_path: Path) -> None:
    first, second = (read(tmp_path, text) for text in (CUBE, f"# another comment\n{CUBE}"))
    assert first == second
    assert hash(first) == hash(second)
