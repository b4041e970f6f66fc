"""Programs that ask for ranks, devices, profilers and logs: in one process they run, and what needs more is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import msc
from msc import Tensor, nn, ops
from msc.frontend import devices, parallel, process_group
from msc.mindspore import checkparam

TO_ALL = ops.AlltoAll(1, 0, 1)
X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    yield
    process_group.release()
    parallel.reset_auto_parallel_context()


@pytest.mark.parametrize("backend", [None, "hccl", "nccl", "mccl"])
def test_a_process_is_rank_0_of_1(backend: str | None) -> None:
    process_group.init(backend)
    process_group.create_group("mine", [0])
    for group in (process_group.GlobalComm.WORLD_COMM_GROUP, "mine"):
        assert process_group.get_rank(group) == process_group.get_local_rank(group) == 0
        assert process_group.get_group_size(group) == process_group.get_local_rank_size(group) == 1
        assert process_group.get_process_group_ranks(group) == [0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: process_group.init("tcp"),
        lambda: process_group.get_rank("none"),
        lambda: process_group.create_group("two", [0, 1]),
        lambda: process_group.get_world_rank_from_group_rank("hccl_world_group", 1),
        lambda: process_group.destroy_group("hccl_world_group"),
        lambda: parallel.set_auto_parallel_context(pipeline_stages=2),
        lambda: parallel.set_auto_parallel_context(parallel_mode="both"),
        lambda: parallel.set_auto_parallel_context(gradient_mean=True),
        lambda: parallel.get_auto_parallel_context("mode"),
        lambda: parallel.set_ps_context(enable_ps=True),
        lambda: parallel.Layout((2, 2), ("x", "x")),
        lambda: parallel.Layout((2, 2), ("x", "y"), [1, 0, 2, 3]),
        lambda: parallel.Layout((2, 2), ("x", "y"))("z"),
        lambda: parallel.load_distributed_checkpoint(nn.Dense(1, 1), ["a", "b"]),
        lambda: ops.Broadcast(1)((Tensor(X),)),
        lambda: ops.AllReduce("mean")(Tensor(X)),
        lambda: nn.DistributedGradReducer([], degree=2),
    ],
)
def test_what_needs_several_processes_is_refused(call: Any) -> None:
    with pytest.raises(msc.MscError, match="MSC0895"):
        call()


def test_a_launcher_of_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_SIZE", "8")
    with pytest.raises(msc.MscError, match="RANK_SIZE=8"):
        process_group.init()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "primitive", [ops.AllReduce(), ops.AllGather(), ops.ReduceScatter("max"), ops.AlltoAll(1, 0, 1)]
)
def test_what_all_ranks_have_is_what_one_has(primitive: Any, compiled: bool) -> None:
    def twice(x: Tensor) -> Any:
        return primitive(x * 2.0)

    assert ((msc.jit(twice) if compiled else twice)(Tensor(X)).asnumpy() == 2 * X).all()

    def total(x: Tensor) -> Any:
        return primitive(x * x).sum()

    gradient: Any = msc.grad(total)(Tensor(X))
    assert (gradient.asnumpy() == 2 * X).all()


def test_devices_are_the_cpu() -> None:
    assert devices.device_count("CPU") == 1
    assert not devices.is_available("Ascend")
    assert 0 < devices.memory_allocated() <= devices.max_memory_allocated() * 2
    first, second = devices.Event(True), devices.Event(True)
    first.record()
    second.record()
    assert first.elapsed_time(second) >= 0
    with pytest.raises(msc.MscError, match="MSC0896"):
        devices.Event().elapsed_time(first)
    for call in (lambda: devices.set_device("TPU"), lambda: devices.set_device("CPU", 3)):
        with pytest.raises(msc.MscError, match="MSC0896"):
            call()


def test_messages_of_programs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from msc.frontend import log

    monkeypatch.setenv("GLOG_v", "1")
    log.debug("hidden")
    log.info("%s steps", 3)
    log.error("bad")
    shown = capsys.readouterr().err
    assert "hidden" not in shown
    assert "[INFO] ME(" in shown
    assert "3 steps" in shown
    assert __file__ in shown


GOOD = [
    (checkparam.check_positive_int, 3), (checkparam.check_non_negative_int, 0), (checkparam.check_positive_float, 0.5),
    (checkparam.check_bool, True), (checkparam.check_positive_int_sequence, [1, 2]),
    (checkparam.check_is_int, -3), (checkparam.check_is_float, 2.0),
]  # fmt: skip


@pytest.mark.parametrize(("check", "value"), GOOD)
def test_checks_give_what_they_are_given(check: Any, value: Any) -> None:
    assert check(value, "a", "Net") == value
    for wrong in ("text", None, float("nan")):
        with pytest.raises(msc.MscError, match="MSC0897"):
            check(wrong, "a", "Net")


def test_checks_of_ranges_and_types() -> None:
    v = checkparam.Validator
    assert v.check_int_range(3, 1, 3, v.INC_RIGHT, "a") == 3
    with pytest.raises(ValueError, match=r"in \[1, 3\)"):
        v.check_int_range(3, 1, 3, v.INC_LEFT, "a", "Net")
    with pytest.raises(TypeError, match="of type int"):
        v.check_value_type("a", True, [int], "Net")
    assert v.check_value_type("a", (1,), [int, tuple]) == (1,)
    assert v.twice(3) == (3, 3)
    assert v.check_string("mean", ["mean", "sum"], "reduction") == "mean"
    v.check_tensors_dtypes_same_and_valid({"x": msc.float32}, [msc.float32], "Net")
    with pytest.raises(TypeError):
        v.check_tensors_dtypes_same_and_valid({"x": msc.float32, "y": msc.int32}, [msc.float32, msc.int32], "Net")
