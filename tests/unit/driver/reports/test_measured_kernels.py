"""Times of kernels count for the model and the number of threads that they were measured with, and for no others."""

import json
from pathlib import Path

import pytest

from msc.driver.reports.kernel_rates import MeasuredKernels
from msc.support.diagnostics import MscError

KERNELS = [
    {"name": "k0_dense", "seconds": 3e-6, "flops": 100, "bytes": 40},
    {"name": "k0_dense", "seconds": 1e-6, "flops": 100, "bytes": 40},
    {"name": "copy", "seconds": 1e-6},
]
MACHINE = {"cpu": "a CPU", "cpus": 2, "threads": 2, "multiply_adds_per_second": 1e9, "bytes_per_second": 1e9}


@pytest.fixture
def measured(tmp_path: Path) -> MeasuredKernels:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"kernels": KERNELS, "machine": MACHINE}), "utf-8")
    return MeasuredKernels.read(path)


def message(measured: MeasuredKernels, works: dict[str, tuple[int, int]], threads: int) -> str:
    with pytest.raises(MscError) as raised:
        measured.check(works, threads)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "MSC0008"
    return "\n".join([diagnostic.message, *diagnostic.notes])


def test_times_of_the_same_kernels_are_taken(measured: MeasuredKernels) -> None:
    assert measured.seconds["k0_dense"] == pytest.approx(2e-6)
    for threads in (0, 2):
        measured.check({"k0_dense": (100, 40), "k1_relu": (1, 2)}, threads)


def test_times_of_another_number_of_threads_are_refused(measured: MeasuredKernels) -> None:
    assert message(measured, {"k0_dense": (100, 40)}, 1) == "the times are of 2 threads, this is for 1"


def test_times_of_another_model_are_refused(measured: MeasuredKernels) -> None:
    text = message(measured, {"k0_dense": (100, 44)}, 2)
    assert text == "'k0_dense' was measured doing 100 flops on 40 bytes; this model has 100 flops on 44 bytes"
    assert message(measured, {}, 2).endswith("this model has no such kernel")
