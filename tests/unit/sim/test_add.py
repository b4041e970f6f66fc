"""A kernel written by hand: right in its values, and no flag of it can be left out."""

from pathlib import Path

import numpy as np
import pytest

from msc.backends.simulation.kernels import parse_kernels, read_kernels
from msc.codegen.davinci.simulate import SimulationOptions, check_kernel, simulate_kernel
from msc.support.diagnostics import MscError

ADD = Path(__file__).parents[3] / "samples" / "davinci" / "add.dv.mir"


def test_values_and_cycles() -> None:
    [kernel] = read_kernels(str(ADD))
    x, y = np.random.default_rng(0).standard_normal((2, 65536)).astype(np.float16)
    z = np.zeros(65536, np.float16)
    result = simulate_kernel(kernel, SimulationOptions(functional=True), [x, y, z], [2])
    np.testing.assert_array_equal(z, x + y)
    assert result.busy("vec") == pytest.approx(8 * 86.0)
    assert result.binding_pipe == "mte2"
    assert result.path_bytes() == {"gm->ub": 262144, "ub->gm": 131072}


def test_timing_alone_takes_the_same_time() -> None:
    [kernel] = read_kernels(str(ADD))
    x, y, z = (np.zeros(65536, np.float16) for _ in range(3))
    both = simulate_kernel(kernel, SimulationOptions(functional=True), [x, y, z], [2])
    assert simulate_kernel(kernel).cycles == both.cycles


def test_every_flag_is_needed() -> None:
    lines = ADD.read_text().splitlines()
    flags = [k for k, line in enumerate(lines) if "_flag" in line]
    check_kernel(read_kernels(str(ADD))[0])
    for k in flags:
        text = "\n".join(lines[:k] + lines[k + 1 :])
        with pytest.raises(MscError, match=r"MSC101[567]"):
            check_kernel(parse_kernels(text, "add")[0])
    assert len(flags) == 12
