from typing import Any

import pytest

from msc.support.diagnostics import MscError
from msc.targets.davinci import davinci_target, davinci_target_of, davinci_targets
from msc.targets.davinci_isa import INSTRUCTIONS, Pipe, Space


def complete() -> dict[str, Any]:
    from msc.targets import davinci

    return davinci._merged("ascend910b1")  # pyright: ignore[reportPrivateUsage]


def test_every_machine_is_read() -> None:
    assert set(davinci_targets()) == {"ascend310", "ascend910a", "ascend910b1", "ascend910b3", "ascend950pr"}
    for name in davinci_targets():
        assert davinci_target(name).name == name


@pytest.mark.parametrize(
    ("name", "teraflops"),
    [("ascend910a", 262.1), ("ascend910b1", 363.7), ("ascend910b3", 294.9), ("ascend950pr", 432.5)],
)
def test_peaks_are_those_of_the_reference_page(name: str, teraflops: float) -> None:
    target = davinci_target(name)
    assert 2 * target.peak_macs * target.cores.cube * target.clock.mhz / 1e6 == pytest.approx(teraflops, abs=0.1)


def test_a_machine_takes_what_it_leaves_out_from_another() -> None:
    b1, b3 = davinci_target("ascend910b1"), davinci_target("ascend910b3")
    assert b3.mte1 == b1.mte1
    assert b3.clock.mhz == 1800


def test_an_unknown_machine_is_told_of() -> None:
    with pytest.raises(MscError, match=r"MSC1001.*\n.*did you mean 'ascend910b1'"):
        davinci_target("ascend910b11")


@pytest.mark.parametrize("change", ["no section", "other key", "missing key", "wrong type"])
def test_a_wrong_file_is_told_of(change: str) -> None:
    table = complete()
    match change:
        case "no section":
            del table["queues"]
        case "other key":
            table["queues"]["depht"] = 3
        case "missing key":
            del table["queues"]["depth"]
        case _:
            table["queues"]["depth"] = "many"
    with pytest.raises(MscError, match="MSC1002"):
        davinci_target_of(table, "mine.toml")


def test_instructions_are_consistent() -> None:
    for name, row in INSTRUCTIONS.items():
        assert row.name == name
        assert len(row.spaces) <= 4
        assert len(row.parameters) <= 20
        assert (row.rate != "") == (row.pipe is Pipe.V and name not in
            ("copy_ubuf_to_ubuf", "set_vector_mask", "set_mask_count", "set_mask_norm"))  # fmt: skip
        if row.pipe is Pipe.V:
            assert set(row.spaces) <= {Space.ub}
